"""Kernels as objects: Numba compiles the body, and what surrounds it is written here.

An object has one entry, a function for Python: ``f(parts, driver, n, *args)`` over `n` items, in that many parts, which
the driver at that address deals to threads. It gives None when all is done, True where a part failed (it had no
memory), and NotImplemented where it is not for these arguments: it looks at each before it begins.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .code import binding, early_passes
from .memory import complete

__all__ = ["kernel_module"]

#: Where things lie in Python's and NumPy's objects, in bytes (of the interfaces that do not change).
_TYPE, _SCALAR = 8, 16
_DATA, _NDIM, _SHAPE, _STRIDES, _DESCR, _FLAGS = 16, 24, 32, 40, 56, 64
_NUMBER = 28
#: NumPy's flags of an array that is C-contiguous, aligned and writable.
_DENSE = 0x0001 | 0x0100 | 0x0400


def numba_type(word: str) -> Any:
    """Numba's type for a word of a signature."""
    import numpy as np
    from numba import from_dtype, types

    if word.endswith("]"):
        dtype, _, ndim = word[:-1].partition("[")
        return types.Array(from_dtype(np.dtype(dtype)), int(ndim), "C", aligned=True)
    if "*" in word:
        of, _, count = word.partition("*")
        return types.UniTuple(getattr(types, of), int(count))
    return types.boolean if word == "bool" else getattr(types, word)


@contextlib.contextmanager
def _without_machine_code(codegen: Any) -> Iterator[None]:
    """Let Numba stop at LLVM's language: each function that a kernel merges would be made machine code for nothing."""
    from numba.core import codegen as parts

    class Library(parts.JITCodeLibrary):  # type: ignore[misc]  # Numba comes without types
        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

        @property
        def codegen(self) -> Any:
            return _Environments(self._codegen)

    class _Environments:
        """The code generator, which has nobody to tell where a function's environment is."""

        def __init__(self, of: Any) -> None:
            self._of = of

        def set_env(self, name: str, env: Any) -> None:
            """Nothing to do."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._of, name)

    codegen._library_class, codegen._pass_builder = Library, lambda **kwargs: early_passes()
    try:
        yield
    finally:
        del codegen._library_class, codegen._pass_builder


def kernel_module(make: Callable[[], Any], words: Sequence[str], name: str) -> Any:
    """The body of a kernel for a signature, with its entry, in LLVM's language.

    Parameters
    ----------
    make : callable
        Gives Numba's dispatcher of ``body(first, last, *args)``.
    words : sequence of str
        Of `args`.
    name : str
        Of the entry.

    Returns
    -------
    llvmlite.binding.ModuleRef
        None where the code depends on places in this process.
    """
    from numba import types
    from numba.core import cgutils
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    args = tuple(map(numba_type, words))
    context = cpu_target.target_context
    context.refresh()
    with global_compiler_lock, _without_machine_code(context.codegen()):
        dispatcher = make()
        whole = (types.int64, types.int64, *args)
        dispatcher.compile(whole)
        result = dispatcher.overloads[whole]
        if result.library.has_dynamic_globals:
            return None
        module = _Entry(context, result, args, words, name).module
        llvm = binding()
        found = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
        found.link_in(result.library._get_module_for_linking(), preserve=True)
        complete(found, llvm)
    return found


class _Entry:
    """Writes the entry of a kernel."""

    def __init__(self, context: Any, result: Any, args: Sequence[Any], words: Sequence[str], name: str) -> None:
        from llvmlite import ir

        self.context, self.result, self.args = context, result, args
        self.i32, self.i64, self.i8p = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
        module = self.module = context.create_module(name)
        self.outside: dict[str, Any] = {}
        entry = ir.Function(module, ir.FunctionType(self.i8p, [self.i8p, self.i8p, self.i64]), name)
        b = self.b = ir.IRBuilder(entry.append_basic_block())
        self.no = entry.append_basic_block("not_these")
        given = b.bitcast(entry.args[1], self.i8p.as_pointer())
        self.check(b.icmp_signed("==", entry.args[2], self.i64(3 + len(args))))
        objects = [b.load(b.gep(given, [self.i64(i)])) for i in range(3 + len(args))]
        parts, driver, n = (self.integer(o) for o in objects[:3])
        values = [self.value(o, t, word) for o, t, word in zip(objects[3:], args, words)]
        state = b.call(self.call_of("PyEval_SaveThread", self.i8p), [])
        flag = _place(b, self.i64)
        b.store(self.i64(0), flag)
        with b.if_else(b.icmp_signed(">", parts, self.i64(1))) as (many, one):
            with many:
                frame, part = self.part(values, name)
                drive = b.inttoptr(driver, ir.FunctionType(ir.VoidType(), [self.i64] * 4).as_pointer())
                b.call(drive, [b.ptrtoint(part, self.i64), b.ptrtoint(frame, self.i64), parts, n])
                b.store(b.load(b.gep(frame, [self.i32(0), self.i32(1)])), flag)
            with one:
                status = self.body(b, [self.i64(0), n, *values])
                b.store(b.zext(status.is_error, self.i64), flag)
        b.call(self.call_of("PyEval_RestoreThread", ir.VoidType(), self.i8p), [state])
        failed = b.icmp_signed("!=", b.load(flag), self.i64(0))
        self.give(b.select(failed, self.object("_Py_TrueStruct"), self.object("_Py_NoneStruct")))
        b.position_at_end(self.no)
        self.give(self.object("_Py_NotImplementedStruct"))

    # -- what is outside -------------------------------------------------------------------------------------------
    def call_of(self, name: str, result: Any, *args: Any) -> Any:
        """A function of Python."""
        from llvmlite import ir

        if name not in self.outside:
            self.outside[name] = ir.Function(self.module, ir.FunctionType(result, args), name)
        return self.outside[name]

    def object(self, name: str) -> Any:
        """The address of an object."""
        from llvmlite import ir

        if name not in self.outside:
            self.outside[name] = ir.GlobalVariable(self.module, ir.IntType(8), name)
        return self.outside[name]

    def give(self, found: Any) -> None:
        from llvmlite import ir

        self.b.call(self.call_of("Py_IncRef", ir.VoidType(), self.i8p), [found])
        self.b.ret(found)

    # -- arguments -------------------------------------------------------------------------------------------------
    def check(self, holds: Any) -> None:
        """Go on where it holds, else say that these arguments are not for this code."""
        b = self.b
        on = b.append_basic_block()
        b.cbranch(holds, on, self.no)
        b.position_at_end(on)

    def at(self, o: Any, offset: int, kind: Any) -> Any:
        b = self.b
        return b.load(b.bitcast(b.gep(o, [self.i64(offset)]), kind.as_pointer()))

    def has_type(self, o: Any, name: str) -> Any:
        return self.b.icmp_unsigned("==", self.at(o, _TYPE, self.i8p), self.object(name))

    def integer(self, o: Any) -> Any:
        """A number of Python's that has at most 64 bits."""
        b = self.b
        self.check(self.has_type(o, "PyLong_Type"))
        found = b.call(self.call_of("PyLong_AsLongLong", self.i64, self.i8p), [o])
        with b.if_then(b.icmp_signed("==", found, self.i64(-1)), likely=False):
            error = b.call(self.call_of("PyErr_Occurred", self.i8p), [])
            with b.if_then(b.icmp_unsigned("!=", error, self.i8p(None)), likely=False):
                from llvmlite import ir

                b.call(self.call_of("PyErr_Clear", ir.VoidType()), [])
                b.branch(self.no)
        return found

    def value(self, o: Any, kind: Any, word: str) -> Any:
        """An argument as Numba's code takes it."""
        from llvmlite import ir

        b = self.b
        if word.endswith("]"):
            return self.array(o, kind)
        if "*" in word:
            self.check(self.has_type(o, "PyTuple_Type"))
            size = b.call(self.call_of("PyTuple_Size", self.i64, self.i8p), [o])
            self.check(b.icmp_signed("==", size, self.i64(kind.count)))
            get = self.call_of("PyTuple_GetItem", self.i8p, self.i8p, self.i64)
            of = word.partition("*")[0]
            items = [self.value(b.call(get, [o, self.i64(i)]), kind.dtype, of) for i in range(kind.count)]
            return self.context.make_tuple(b, kind, items)
        if word == "int64":
            return self.integer(o)
        if word == "float64":
            self.check(self.has_type(o, "PyFloat_Type"))
            return b.call(self.call_of("PyFloat_AsDouble", ir.DoubleType(), self.i8p), [o])
        if word == "float32":
            self.check(self.has_type(o, "mxcore_type_float32"))
            return self.at(o, _SCALAR, ir.FloatType())
        yes = b.icmp_unsigned("==", o, self.object("_Py_TrueStruct"))
        self.check(b.or_(yes, b.icmp_unsigned("==", o, self.object("_Py_FalseStruct"))))
        return yes

    def array(self, o: Any, kind: Any) -> Any:
        """A dense array."""
        import numpy as np
        from numba.np import arrayobj
        from numba.np.numpy_support import as_dtype

        b = self.b
        dtype = as_dtype(kind.dtype)
        self.check(self.has_type(o, "mxcore_type_ndarray"))
        descr = self.at(o, _DESCR, self.i8p)
        number = self.at(descr, _NUMBER, self.i32)
        alike = [b.icmp_signed("==", number, self.i32(k)) for k in _numbers(np, dtype)]
        self.check(functools.reduce(b.or_, alike))
        self.check(b.icmp_signed("==", self.at(o, _NDIM, self.i32), self.i32(kind.ndim)))
        flags = b.and_(self.at(o, _FLAGS, self.i32), self.i32(_DENSE))
        self.check(b.icmp_signed("==", flags, self.i32(_DENSE)))
        order = b.load(b.gep(descr, [self.i64(26)]))
        self.check(b.icmp_unsigned("!=", order, order.type(ord(">"))))
        shapes, strides = (b.bitcast(self.at(o, at, self.i8p), self.i64.as_pointer()) for at in (_SHAPE, _STRIDES))
        ary = arrayobj.make_array(kind)(self.context, b)
        data = b.bitcast(self.at(o, _DATA, self.i8p), ary.data.type)
        arrayobj.populate_array(
            ary,
            data=data,
            shape=[b.load(b.gep(shapes, [self.i64(i)])) for i in range(kind.ndim)],
            strides=[b.load(b.gep(strides, [self.i64(i)])) for i in range(kind.ndim)],
            itemsize=self.i64(dtype.itemsize),
            meminfo=None,
        )
        return ary._getvalue()

    # -- the body --------------------------------------------------------------------------------------------------
    def body(self, b: Any, values: Sequence[Any]) -> Any:
        """Call it; returns its status."""
        target = self.context.declare_function(self.module, self.result.fndesc)
        signature = self.result.signature
        status, _ = self.context.call_conv.call_function(b, target, signature.return_type, signature.args, values)
        return status

    def part(self, values: Sequence[Any], name: str) -> tuple[Any, Any]:
        """The values in memory, with a flag for failure behind; ``void part(first, last, frame)``."""
        from llvmlite import ir

        b = self.b
        packed = ir.LiteralStructType([v.type for v in values])
        frame_type = ir.LiteralStructType([packed, self.i64])
        f = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [self.i64, self.i64, self.i8p]), f"{name}.part")
        inside = ir.IRBuilder(f.append_basic_block())
        first, last, raw = f.args
        frame = inside.bitcast(raw, frame_type.as_pointer())
        whole = inside.load(inside.gep(frame, [self.i32(0), self.i32(0)]))
        items = [inside.extract_value(whole, i) for i in range(len(values))]
        status = self.body(inside, [first, last, *items])
        with inside.if_then(status.is_error, likely=False):
            inside.store(self.i64(1), inside.gep(frame, [self.i32(0), self.i32(1)]))
        inside.ret_void()

        frame = _place(b, frame_type)
        for i, v in enumerate(values):
            b.store(v, b.gep(frame, [self.i32(0), self.i32(0), self.i32(i)]))
        b.store(self.i64(0), b.gep(frame, [self.i32(0), self.i32(1)]))
        return frame, f


def _numbers(np: Any, dtype: Any) -> list[int]:
    """NumPy's numbers of a dtype: C has several names for some integers."""
    return sorted({t.num for t in map(np.dtype, "bBhHiIlLqQ?efdFD") if t == dtype})


def _place(b: Any, kind: Any) -> Any:
    """A place on the stack, made once."""
    with b.goto_entry_block():
        return b.alloca(kind)
