"""A reader of pickles that runs nothing in them: plain data, arrays of NumPy, and what its caller knows.

`pickle` trusts what it reads: it calls what the file names with what the file says, and takes memory by numbers in it.
Here `pickletools` cuts the bytes into instructions, which cannot be larger than the bytes, and each does one small
thing to plain Python values. What an instruction calls is an entry of `PLAIN`, or comes from the caller's `find`;
arrays are made of typed bytes whose number is checked.
"""

from __future__ import annotations

import builtins
import codecs
import collections
import io
import math
import pickletools
import re
import reprlib
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from .._interrupts import let_through
from ..base import MXNetError, error

__all__ = ["INSTRUCTIONS", "Named", "Pending", "read"]

#: How many lists, dictionaries, tuples and calls a file may hold: each takes up to a hundred times its bytes.
MOST_PARTS = 1 << 20
#: The longest integer, and the longest that is a key, in bits.
LONGEST, LONGEST_KEY = 2048, 64
#: How many keys may be tuples, whose hashes a file can choose, and how long those are.
MOST_TUPLES, LONGEST_TUPLE = 4096, 16
#: How often calls may take the bytes and values of a file, on average: pickles of Python 2 name the bytes of an array
#: three times.
MOST_USES, FREE_USES = 4, 1 << 16

_NOTHING: Any = object()
_MARK: Any = object()
_DTYPE = re.compile(r"b1|[iu][1248]|f[248]")


class Named:
    """What a file means by a name.

    Parameters
    ----------
    name : str
        For errors.
    value : object, optional
        What stands for it as a value.
    call : callable, optional
        What a call of it gives; it checks its arguments.
    new : callable, optional
        Makes an empty object, given the arguments of ``__new__``.
    """

    __slots__ = ("name", "value", "call", "new")

    def __init__(
        self,
        name: str,
        value: Any = _NOTHING,
        call: Callable[..., Any] | None = None,
        new: Callable[..., Any] | None = None,
    ) -> None:
        self.name, self.value, self.call, self.new = name, value, call, new


class Pending:
    """Something that a file has named, whose content it gives later, at once.

    Parameters
    ----------
    what : str
        For errors.
    finish : callable
        state -> the value.
    """

    __slots__ = ("what", "finish", "value")

    def __init__(self, what: str, finish: Callable[[Any], Any]) -> None:
        self.what, self.finish, self.value = what, finish, _NOTHING


def read(data: bytes, find: Callable[[str, str], Named | None], build: Callable[[Any, Any], None]) -> Any:
    """The value that a pickle holds.

    Parameters
    ----------
    data : bytes
    find : callable
        (module, name) -> Named, or None; for what is not in `PLAIN`.
    build : callable
        (object made by `Named.new`, state); gives it its state.

    Raises
    ------
    MXNetError
        (also ValueError or TypeError) with the offset, for anything that is no such pickle.
    """
    machine = _Machine(data, find, build)
    try:
        return machine.run()
    except Exception as e:  # damaged ones raise anything
        let_through(e)
        at = machine.at
        kind = type(e) if isinstance(e, MXNetError) else ValueError
        said = str(e) if isinstance(e, (MXNetError, _Damage, ValueError)) else f"{type(e).__name__}: {e}"
        raise error(kind, f"{said[:500]} (offset {at} of {len(data)})") from None


class _Damage(Exception):
    """Something in a file that cannot be."""


class _Machine:
    """A stack, and a memory of what was on it."""

    def __init__(
        self, data: bytes, find: Callable[[str, str], Named | None], build: Callable[[Any, Any], None]
    ) -> None:
        self.file, self.find, self.build_object = io.BytesIO(data), find, build
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.at = self.parts = self.used = self.tuples = 0
        self.most_used = MOST_USES * len(data) + FREE_USES
        self.made: dict[int, Any] = {}  # objects that have no state yet
        self.classes: dict[type, Named] = {}
        self.own = {
            (module, name): Named(f"{module}.{name}", value, call)
            for module, name, value, call in (
                ("copyreg", "_reconstructor", _NOTHING, self.reconstructed),
                ("copyreg", "__newobj__", _NOTHING, self.new_object),
                ("builtins", "set", _NOTHING, lambda v=(): self.set_of(_sequence(v), set)),
                ("builtins", "frozenset", _NOTHING, lambda v=(): self.set_of(_sequence(v), frozenset)),
                ("collections", "OrderedDict", _NOTHING, self.ordered),
            )
        }

    def run(self) -> Any:
        file, stack = self.file, self.stack
        while True:
            self.at = file.tell()
            code = file.read(1)
            if not code:
                raise _Damage("the file is cut")
            name, reader = INSTRUCTIONS.get(code, (None, None))
            if name is None:
                raise _Damage(f"byte {code[0]:#04x} is no instruction of a pickle of plain data")
            arg = None if reader is None else reader(file)
            if name == "STOP":
                break
            constant = _CONSTANTS.get(name, _NOTHING)
            if constant is not _NOTHING:
                stack.append(constant)
            elif name in _GIVEN:
                if arg.__class__ is int and arg.bit_length() > LONGEST:
                    raise _Damage(f"an integer of {arg.bit_length()} bits; at most {LONGEST} are read")
                stack.append(arg)
            else:
                getattr(self, "do_" + name)(arg)
        if len(stack) != 1:
            raise _Damage(f"{len(stack)} values at the end, not one")
        return self.settled(stack.pop())

    # -- values

    def settled(self, v: Any) -> Any:
        """A value as it may stand in others."""
        if v.__class__ is Named:
            if v.value is _NOTHING:
                raise _Damage(f"{v.name} is no value")
            return v.value
        if v.__class__ is Pending:
            raise _Damage(f"{v.what} lacks its content")
        if v is _MARK:
            raise _Damage("a value is missing")
        return v

    def pop(self) -> Any:
        if not self.stack:
            raise _Damage("a value is missing")
        return self.settled(self.stack.pop())

    def named(self) -> Named:
        v = self.stack.pop() if self.stack else None
        if v.__class__ is not Named:
            raise _Damage(f"a call of a {type(v).__name__}")
        return v

    def items(self) -> list[Any]:
        """What is above the last mark."""
        stack = self.stack
        for at in range(len(stack) - 1, -1, -1):
            if stack[at] is _MARK:
                found = [self.settled(v) for v in stack[at + 1 :]]
                del stack[at:]
                return found
        raise _Damage("a mark is missing")

    def part(self, v: Any) -> None:
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise _Damage(f"more than {MOST_PARTS} lists, dictionaries and calls")
        self.stack.append(v)

    def top(self, kinds: tuple[type, ...], what: str) -> Any:
        v = self.stack[-1] if self.stack else None
        if v.__class__ not in kinds:
            raise _Damage(f"{what} of a {type(v).__name__}")
        return v

    # -- instructions: the stack

    def do_PROTO(self, arg: int) -> None:
        if arg > 5:
            raise _Damage(f"protocol {arg} is not known")

    def do_FRAME(self, arg: int) -> None:
        pass

    def do_MARK(self, arg: None) -> None:
        self.stack.append(_MARK)

    def do_POP(self, arg: None) -> None:
        if not self.stack:
            raise _Damage("a value is missing")
        self.stack.pop()

    def do_POP_MARK(self, arg: None) -> None:
        self.items()

    def do_DUP(self, arg: None) -> None:
        v = self.pop()
        self.stack += (v, v)

    def do_PUT(self, arg: int) -> None:
        if not self.stack or self.stack[-1] is _MARK:
            raise _Damage("a value is missing")
        self.memo[arg] = self.stack[-1]

    def do_MEMOIZE(self, arg: None) -> None:
        self.do_PUT(len(self.memo))

    def do_GET(self, arg: int) -> None:
        v = self.memo.get(arg, _NOTHING)
        if v is _NOTHING:
            raise _Damage(f"value {arg} is not there")
        self.stack.append(v.value if v.__class__ is Pending and v.value is not _NOTHING else v)

    do_BINPUT = do_LONG_BINPUT = do_PUT
    do_BINGET = do_LONG_BINGET = do_GET

    # -- instructions: containers

    def do_EMPTY_LIST(self, arg: None) -> None:
        self.part([])

    def do_EMPTY_DICT(self, arg: None) -> None:
        self.part({})

    def do_EMPTY_SET(self, arg: None) -> None:
        self.part(set())

    def do_LIST(self, arg: None) -> None:
        self.part(self.items())

    def do_TUPLE(self, arg: None) -> None:
        self.part(tuple(self.items()))

    def do_FROZENSET(self, arg: None) -> None:
        self.part(self.set_of(self.items(), frozenset))

    def do_DICT(self, arg: None) -> None:
        items = self.items()
        self.part({})
        self.put_items(self.stack[-1], items)

    def do_TUPLE1(self, arg: None) -> None:
        self.part((self.pop(),))

    def do_TUPLE2(self, arg: None) -> None:
        b, a = self.pop(), self.pop()
        self.part((a, b))

    def do_TUPLE3(self, arg: None) -> None:
        c, b, a = self.pop(), self.pop(), self.pop()
        self.part((a, b, c))

    def do_APPEND(self, arg: None) -> None:
        v = self.pop()
        self.top((list, collections.deque), "an element").append(v)

    def do_APPENDS(self, arg: None) -> None:
        items = self.items()
        self.top((list, collections.deque), "elements").extend(items)

    def do_ADDITEMS(self, arg: None) -> None:
        items = self.set_of(self.items(), set)
        self.top((set,), "elements").update(items)

    def do_SETITEM(self, arg: None) -> None:
        v, k = self.pop(), self.pop()
        self.put_items(self.top(_DICTS, "an entry"), (k, v))

    def do_SETITEMS(self, arg: None) -> None:
        items = self.items()
        self.put_items(self.top(_DICTS, "entries"), items)

    def put_items(self, target: dict[Any, Any], items: Any) -> None:
        if len(items) % 2:
            raise _Damage("a key without value")
        for i in range(0, len(items), 2):
            target[self.key(items[i])] = items[i + 1]

    def set_of(self, values: Any, kind: Callable[[Any], Any]) -> Any:
        return kind(map(self.key, values))

    def key(self, v: Any) -> Any:
        """A value as a key: one whose hash takes no time, and is not that of all others."""
        if v.__class__ is tuple and len(v) <= LONGEST_TUPLE:
            self.tuples += 1
            if self.tuples > MOST_TUPLES:
                raise _Damage(f"more than {MOST_TUPLES} tuples as keys")
            return tuple([self.key(x) if x.__class__ is not tuple else self.no_key(x) for x in v])
        if not isinstance(v, _KEYS):
            self.no_key(v)
        if v.__class__ is int and v.bit_length() > LONGEST_KEY:  # many of them may share a hash
            raise _Damage(f"a key of {v.bit_length()} bits; at most {LONGEST_KEY} are read")
        return v

    @staticmethod
    def no_key(v: Any) -> Any:
        raise _Damage(f"a {type(v).__name__} as a key; numbers, texts and short tuples of them are read")

    def use(self, *values: Any) -> None:
        """Count what a call copies: a file can name the same bytes again and again."""
        self.used += sum(len(v) for v in values if v.__class__ in _SIZED)
        if self.used > self.most_used:
            raise _Damage(f"the same values are copied again and again, {self.used} bytes and elements in all")

    # -- instructions: names and calls

    def do_GLOBAL(self, arg: str) -> None:
        self.name(*arg.split(" ", 1))

    def do_STACK_GLOBAL(self, arg: None) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise _Damage("a name that is no text")
        self.name(module, name)

    def name(self, module: str, name: str = "") -> None:
        module = _PYTHON2_MODULES.get(module, module)
        name = _PYTHON2_NAMES.get(name, name) if module == "builtins" else name
        found = PLAIN.get((module.replace("numpy.core.", "numpy._core."), name)) or self.own.get((module, name))
        if found is None:
            found = self.find(module, name)
            if found is None:
                raise error(TypeError, f"it names {module[:80]}.{name[:80]}, which is no plain data")
            if found.new is not None:
                self.classes[found.value] = found
        self.stack.append(found)

    def do_REDUCE(self, arg: None) -> None:
        args, called = self.pop(), self.named()
        if called.call is None:
            raise _Damage(f"a call of {called.name}, which holds no data by itself")
        self.use(*_tuple(args))
        self.part(called.call(*args))

    def do_NEWOBJ(self, arg: None) -> None:
        args, called = self.pop(), self.named()
        self.part(self.new_object(called.value, *_tuple(args)))

    def new_object(self, cls: Any, *args: Any) -> Any:
        made = self.classes.get(cls) if isinstance(cls, type) else None
        if made is None or made.new is None:
            raise _Damage(f"an object of {_short(cls)}, which holds no data by itself")
        found = made.new(*args)
        self.made[id(found)] = found
        return found

    def reconstructed(self, cls: Any, base: Any, content: Any) -> Any:
        """How Python 2 and the first protocols write objects."""
        if base not in (object, tuple):
            raise _Damage(f"an object upon {_short(base)}")
        return self.new_object(cls, *(() if content is None else (content,)))

    def ordered(self, pairs: Any = ()) -> Any:
        found: Any = collections.OrderedDict()
        self.put_items(found, [x for pair in _sequence(pairs) for x in _two(pair)])
        return found

    def do_BUILD(self, arg: None) -> None:
        state = self.pop()
        target = self.stack[-1] if self.stack else None
        if target.__class__ is Pending:
            if target.value is not _NOTHING:
                raise _Damage(f"{target.what} gets its content twice")
            self.use(*(state.values() if state.__class__ is dict else state if state.__class__ is tuple else ()))
            target.value = self.stack[-1] = target.finish(state)
        elif id(target) in self.made:
            del self.made[id(target)]
            self.build_object(target, state)
        else:
            raise _Damage(f"a state for a {type(target).__name__}")


def _short(v: Any) -> str:
    """What an error says of a value, which may hold itself a million times."""
    return reprlib.repr(v)


# -- plain data --------------------------------------------------------------------------------------------------------
def _tuple(v: Any) -> tuple[Any, ...]:
    if v.__class__ is not tuple:
        raise _Damage("arguments that are no tuple")
    return v


def _sequence(v: Any) -> Any:
    if v.__class__ not in (list, tuple):
        raise _Damage(f"a list was expected, not a {type(v).__name__}")
    return v


def _raw(v: Any) -> Any:
    """Bytes; Python 2 wrote them as text of Latin letters."""
    if v.__class__ is str:
        return v.encode("latin-1")
    if v.__class__ not in (bytes, bytearray):
        raise _Damage(f"bytes were expected, not a {type(v).__name__}")
    return v


def _bytearray(v: Any = b"", encoding: str = "latin-1") -> bytearray:
    return bytearray(_encoded(v, encoding) if v.__class__ is str else _raw(v))


def _encoded(text: Any, encoding: Any = "utf-8") -> bytes:
    if text.__class__ is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise _Damage(f"{_short(encoding)} is no encoding of text in pickles")
    return text.encode(encoding)


def _two(pair: Any) -> Any:
    if len(_sequence(pair)) != 2:
        raise _Damage("a pair was expected")
    return pair


def _default(factory: Any = None) -> Any:
    if factory not in (None, list, dict, set, int, float, str, tuple):
        raise _Damage(f"a defaultdict of {_short(factory)}")
    return collections.defaultdict(factory)


def _numbers(kinds: tuple[type, ...], make: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if not all(a.__class__ in kinds for a in args):
            raise _Damage(f"{make.__name__} of something else than numbers")
        return make(*args)

    return call


def _dtype(text: Any, align: Any = False, copy: Any = True) -> Pending:
    if text.__class__ is not str or not _DTYPE.fullmatch(text):
        raise _Damage(f"an array of {_short(text)}; numbers are read")
    dtype = np.dtype(text)

    def finish(state: Any) -> Any:
        if (
            state.__class__ is not tuple
            or len(state) < 5
            or state[1] not in ("<", ">", "=", "|")
            or any(v is not None for v in state[2:5])
        ):
            raise _Damage("a dtype with a state that numbers do not have")
        return dtype.newbyteorder(state[1])

    return Pending("a dtype", finish)


def _array_of(raw: Any, dtype: Any, shape: Any, order: Literal["C", "F"]) -> Any:
    if not isinstance(dtype, np.dtype):
        raise _Damage("an array without dtype")
    shape = tuple(_sequence(shape))
    if len(shape) > 64 or not all(d.__class__ is int and 0 <= d < 1 << 59 for d in shape):
        raise _Damage(f"an array of shape {_short(shape)}")
    raw = _raw(raw)
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise _Damage(f"{len(raw)} bytes for an array of shape {_short(shape)} and dtype {dtype}")
    if dtype == np.bool_:
        return (np.frombuffer(raw, np.uint8) != 0).reshape(shape, order=order)
    return np.frombuffer(bytearray(raw), dtype).reshape(shape, order=order)


def _reconstruct(cls: Any, shape: Any, kind: Any) -> Pending:
    if cls is not np.ndarray:
        raise _Damage(f"an array of class {_short(cls)}")

    def finish(state: Any) -> Any:
        if state.__class__ is not tuple or len(state) != 5:
            raise _Damage("an array with a state that arrays do not have")
        return _array_of(state[4], state[2], state[1], "F" if state[3] else "C")

    return Pending("an array", finish)


def _scalar(dtype: Any, raw: Any) -> Any:
    return _array_of(raw, dtype, (), "C")[()]


def _frombuffer(raw: Any, dtype: Any, shape: Any, order: Any) -> Any:
    if order not in ("C", "F"):
        raise _Damage(f"an array in order {_short(order)}")
    return _array_of(raw, dtype, shape, order)


def _deque(values: Any = (), most: Any = None) -> Any:
    if most.__class__ not in (int, type(None)):
        raise _Damage("a deque whose length is no number")
    return collections.deque(_sequence(values), most)


def _empty_bytes() -> bytes:
    return b""


def _types(module: str, names: str, where: Any) -> dict[tuple[str, str], Named]:
    return {(module, name): Named(f"{module}.{name}", getattr(where, name)) for name in names.split()}


def _calls(module: str, **calls: Callable[..., Any]) -> dict[tuple[str, str], Named]:
    return {
        (module, name): Named(
            f"{module}.{name}", getattr(builtins, name, _NOTHING) if module == "builtins" else _NOTHING, call
        )
        for name, call in calls.items()
    }


#: (module, name) -> what a file may mean by it: types as values, and calls that only put data together.
PLAIN: dict[tuple[str, str], Named] = {
    **_types("builtins", "bool dict float int list object str tuple", builtins),
    **_calls(
        "builtins",
        bytearray=_bytearray,
        bytes=_empty_bytes,
        complex=_numbers((int, float), complex),
        object=object,
        range=_numbers((int,), range),
        slice=_numbers((int, type(None)), slice),
    ),
    **_calls("collections", defaultdict=_default, deque=_deque),
    **_calls("_codecs", encode=_encoded),
    **_types("numpy", "bool_ float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 ndarray", np),
    **_calls("numpy", dtype=_dtype),
    **_calls("numpy._core.multiarray", _reconstruct=_reconstruct, scalar=_scalar),
    **_calls("numpy._core.numeric", _frombuffer=_frombuffer),
}
_PYTHON2_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_PYTHON2_NAMES = {"xrange": "range", "long": "int", "unicode": "str"}
_SIZED = (bytes, bytearray, str, list, tuple)
_KEYS = (str, int, float, bytes, type(None), np.generic)
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)


# -- instructions ------------------------------------------------------------------------------------------------------
def _string(file: Any) -> str:
    """A text of Python 2, which may hold bytes."""
    line = file.readline()
    text = line[:-1].strip()
    if not line.endswith(b"\n") or len(text) < 2 or text[:1] not in b"\"'" or text[-1:] != text[:1]:
        raise _Damage("a text without quotes")
    return codecs.escape_decode(text[1:-1])[0].decode("latin-1")


def _instructions() -> dict[bytes, tuple[str, Any]]:
    known = {*_CONSTANTS, *_GIVEN, "STOP", *(n[3:] for n in vars(_Machine) if n.startswith("do_"))}
    found: dict[bytes, tuple[str, Any]] = {
        op.code.encode("latin-1"): (op.name, op.arg and op.arg.reader) for op in pickletools.opcodes if op.name in known
    }
    found[b"S"] = ("STRING", _string)
    return found


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
#: What stands in the file itself.
_GIVEN = frozenset(
    """INT BININT BININT1 BININT2 LONG LONG1 LONG4 STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE
    BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 FLOAT BINFLOAT""".split()
)
INSTRUCTIONS = _instructions()
