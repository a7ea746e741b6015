"""The one door to Numba: kernels compiled on first use, cached on disk, run in parts by several threads.

Numba is imported when the first kernel runs, not when a module that declares kernels is imported. A kernel is
an ordinary function over a range of items, ``f(first, last, *args)``. It is compiled once. Called over all
its items it is the serial twin; the parallel form is the same machine code called over parts of the range,
dealt to Numba's threads by one small driver, the only parallel loop here (a parallel loop in each kernel
would compile each of them four times over). The serial twin runs

* below the size threshold (a near-empty parallel call costs 4 us),
* where the calling thread may use one thread only (:func:`mxcore_cpu.threads.limit`),
* in a forked child whose parent had started the threading layer (GNU OpenMP ends such a process),
* when the ``workqueue`` layer is busy (that layer ends the process on concurrent calls; it is the last
choice).

What Numba gives for a kernel is taken as LLVM's language, and becomes an object of :mod:`.native`: code that the next
process loads and calls without Numba.

Compiled code lives in ``MXCORE_CACHE_DIR`` (by default the user's cache folder), in a folder named by a hash
of all kernels' sources, since a kernel inlines helpers of other files; see :mod:`.cache`.

Three habits make loops in kernels vectorise: slice arrays to the range first and count from 0, or index with
unsigned integers (a signed index might count from the end); give constants the arrays' type
(``x.dtype.type(0.5)``: a bare 0.5 makes float64 of all it meets); never mix signed and unsigned integers
(Numba makes float64 of that, too).
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, overload

import numpy as np

from . import background, blas, cache, native, threads
from .loading import available, numba, reason
from .locks import once
from .native import driver, shipped
from .native.arguments import normal, signature, usable
from .native.kernels import kernel_module

__all__ = [
    "COMPILE_ONLY",
    "CONTRACT",
    "EXACT",
    "REORDER",
    "Kernel",
    "Lazy",
    "available",
    "driver_address",
    "helper",
    "intrinsic",
    "kernel",
    "njit",
    "numba",
    "reason",
    "typed",
]

prange = range  # in Python; `numba.prange` where the driver is compiled

#: Fused multiply-add is the one liberty every kernel may take; NaN, infinities and signed zeros stay NumPy's.
CONTRACT = frozenset({"contract"})
#: Not even that: next to a threshold or a pixel rounding decides, and every step is rounded as in the reference.
EXACT: frozenset[str] = frozenset()
#: Sums may also be reordered, which is what makes them vectorise.
REORDER = frozenset({"contract", "reassoc"})


def njit(function: Callable[..., Any], **options: Any) -> Any:
    """Compile for calls without the interpreter: NumPy's rules of errors, and no wrapper for C."""
    return numba().njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


class Lazy:
    """Something kernels call by name, made by Numba only when a kernel that uses it is compiled."""

    def __init__(self, make: Callable[[], Any], function: Callable[..., Any]) -> None:
        self._make = make
        self._made: Any = None
        self.__name__, self.__doc__, self.__wrapped__ = function.__name__, function.__doc__, function

    def __call__(self, *args: Any) -> Any:
        return self.__wrapped__(*args)

    @property
    def _numba_type_(self) -> Any:
        # Numba asks this property for the type of a global it does not know.
        from numba.core.registry import cpu_target

        context = cpu_target.typing_context
        if self._made is None:
            self.made()
            context.refresh()
        return context.resolve_value_type(self._made)

    def made(self) -> Any:
        """What Numba makes of it."""
        if self._made is None:
            self._made = self._make()
        return self._made


@overload
def helper(*, fastmath: frozenset[str] = ..., inline: bool = ...) -> Callable[[Callable[..., Any]], Lazy]: ...
@overload
def helper(function: Callable[..., Any], *, fastmath: frozenset[str] = ..., inline: bool = ...) -> Lazy: ...
def helper(
    function: Callable[..., Any] | None = None, *, fastmath: frozenset[str] = CONTRACT, inline: bool = True
) -> Any:
    """Declare a scalar or loop function that kernels call; with `inline` its code is merged into theirs."""
    if function is None:
        return functools.partial(helper, fastmath=fastmath, inline=inline)
    options = {"fastmath": set(fastmath), "forceinline": inline, "no_cpython_wrapper": True}

    def make() -> Any:
        return njit(_named(function, cache.source_stamp(function, sorted(fastmath))), **options)

    return Lazy(make, function)


def _named(function: Any, stamp: str | None) -> Any:
    """The function under a name that no other one has.

    Compiled code is linked by names, which Numba makes of a function's name, its types and a count of the process: of
    two functions with one name that two processes have compiled and kept, one would run for both in a third.
    """
    f = function
    named = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    named.__qualname__, named.__module__ = f"{f.__qualname__}_{(stamp or '')[:16]}", f.__module__
    return named


def intrinsic(function: Callable[..., Any]) -> Lazy:
    """Declare a function that writes LLVM code: ``f(typing_context, *types) -> (signature, codegen)``."""
    return Lazy(lambda: _intrinsic(function), function)


def _intrinsic(function: Callable[..., Any]) -> Any:
    numba()
    from numba.extending import intrinsic as make

    return make(function)


def typed(function: Callable[..., Any], single: Lazy, double: Lazy) -> Lazy:
    """Declare a function of floats with one body for float32 and one for the rest, chosen when compiling.

    `function` is the plain Python meaning; the two bodies take the same arguments.
    """

    def make() -> Any:
        types_ = numba().types
        from numba.extending import overload

        def choose(*args: Any) -> Callable[..., Any]:
            return single if all(a == types_.float32 for a in args) else double

        def stub(*args: Any) -> None:
            """Stand for `function` inside kernels."""

        def one(x: Any) -> Any:
            body = choose(x)
            return lambda x: body(x)

        def two(x: Any, y: Any) -> Any:
            body = choose(x, y)
            return lambda x, y: body(x, y)

        arity = single.__wrapped__.__code__.co_argcount
        options = {"fastmath": set(CONTRACT), "forceinline": True, "no_cpython_wrapper": True, "error_model": "numpy"}
        overload(stub, jit_options=options, strict=False)((one, two)[arity - 1])
        return stub

    return Lazy(make, function)


#: The compiled face of a kernel: all items here when `parts` is 1, else in that many parts through the
#: driver. It is written out for each number of arguments because Numba is slower at calls with ``*args``;
#: `first` is always 0, and an argument because Numba would compile the body once more for a literal 0.
_LAUNCH = """
def launch(driver, parts, first, n, {args}):
    if parts > 1:
        return split(driver, parts, n, body, ({args},))
    body(first, n, {args})
    return 0
"""


@functools.cache
def _launch_code(arity: int) -> types.CodeType:
    names: dict[str, Any] = {}
    exec(_LAUNCH.format(args=", ".join(f"a{i}" for i in range(arity))), names)
    code: types.CodeType = names["launch"].__code__
    return code


@intrinsic
def _split(typingctx: Any, driver: Any, parts: Any, n: Any, body: Any, args: Any) -> Any:
    """Call body(first, last, *args) for every part through the driver; return 1 if a part failed."""
    from llvmlite import ir
    from numba import types as nb
    from numba.core import cgutils

    body_sig = body.get_call_type(typingctx, (nb.int64, nb.int64, *args), {})

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        target = body.dispatcher.overloads[body_sig.args]
        context.active_code_library.add_linking_library(target.library)
        i8p, i64 = ir.IntType(8).as_pointer(), ir.IntType(64)
        frame_type = ir.LiteralStructType([context.get_value_type(args), i64])
        part_type = ir.FunctionType(ir.VoidType(), [i64, i64, i8p])

        # A C function (first, last, frame) around the body; the frame holds the arguments and a flag for
        # failure.
        part = ir.Function(builder.module, part_type, builder.module.get_unique_name("part"))
        part.linkage = "internal"
        inside = ir.IRBuilder(part.append_basic_block())
        first, last, raw = part.args
        frame = inside.bitcast(raw, frame_type.as_pointer())
        packed = inside.load(cgutils.gep_inbounds(inside, frame, 0, 0))
        items = [inside.extract_value(packed, i) for i in range(len(args))]
        function = context.declare_function(builder.module, target.fndesc)
        status, _ = context.call_conv.call_function(
            inside, function, body_sig.return_type, body_sig.args, [first, last, *items]
        )
        with inside.if_then(status.is_error, likely=False):
            inside.store(i64(1), cgutils.gep_inbounds(inside, frame, 0, 1))
        inside.ret_void()

        frame = cgutils.alloca_once(builder, frame_type)
        builder.store(values[4], cgutils.gep_inbounds(builder, frame, 0, 0))
        flag = cgutils.gep_inbounds(builder, frame, 0, 1)
        builder.store(i64(0), flag)
        drive = builder.inttoptr(values[0], ir.FunctionType(ir.VoidType(), [i64] * 4).as_pointer())
        builder.call(drive, [builder.ptrtoint(part, i64), builder.ptrtoint(frame, i64), values[1], values[2]])
        return builder.load(flag)

    return nb.int64(nb.int64, nb.int64, nb.int64, body, args), codegen


@intrinsic
def call_part(typingctx: Any, part: Any, first: Any, last: Any, frame: Any) -> Any:
    """Call the C function at this address."""
    from llvmlite import ir
    from numba import types as nb

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        i8p, i64 = ir.IntType(8).as_pointer(), ir.IntType(64)
        function = builder.inttoptr(values[0], ir.FunctionType(ir.VoidType(), [i64, i64, i8p]).as_pointer())
        builder.call(function, [values[1], values[2], builder.inttoptr(values[3], i8p)])
        return context.get_dummy_value()

    return nb.void(nb.int64, nb.int64, nb.int64, nb.int64), codegen


def _drive(part: Any, frame: Any, parts: Any, n: Any) -> None:
    """Deal the items to Numba's threads: the one parallel loop of this plugin."""
    for i in prange(parts):
        call_part(part, np.int64(i) * n // parts, (np.int64(i) + 1) * n // parts, frame)


@functools.cache
@once
def driver_address() -> int:
    """Return the address of a driver, compiled once and for all kernels: our own, or :func:`_drive`."""
    if driver.usable():
        return driver.driver()
    nb = numba()
    twin = types.FunctionType(_drive.__code__, dict(_drive.__globals__, prange=nb.prange), "_drive")
    twin.__module__ = __name__
    compiled = cache.attach(nb.njit(nogil=True, error_model="numpy", parallel=True)(twin), __name__)
    compiled.compile((nb.int64,) * 4)
    [result] = compiled.overloads.values()
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name))


#: Whether kernels are compiled at a call, but not run: in a process that compiles for others.
COMPILE_ONLY = types.SimpleNamespace(on=False)


def _not_compiled(*args: Any) -> Any:
    """What stands for compiled code before there is any."""
    return NotImplemented


class Kernel:
    """A compute kernel: one source, one compilation, run over all its items at once or in parts by threads.

    Attributes
    ----------
    threshold : int
        Least work, in elements, that is worth more than one thread.
    """

    def __init__(self, function: Callable[..., Any], threshold: int, fastmath: frozenset[str], blas: bool) -> None:
        self.function = self.__wrapped__ = function
        self.threshold, self.fastmath, self.blas = threshold, fastmath, blas
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        #: Signature -> code; the code that ran last.
        self._codes: dict[tuple[str, ...], Any] = {}
        self._recent: Callable[..., Any] = _not_compiled
        self._dispatcher: Any = None

    def __call__(self, n: int, *args: Any) -> None:
        """Run over `n` items, which are also the measure of the work."""
        if n >= self.threshold or self.blas:
            self.run(self.workers(n), n, *args)
        elif (found := self._recent(1, 0, n, *args)) is not None:
            self._settle(found, 1, 0, n, args)

    def workers(self, work: int) -> int:
        """Return how many threads this much work deserves in the calling thread."""
        return 1 if work < self.threshold else threads.count()

    def run(self, workers: int, n: int, *args: Any) -> None:
        """Run over `n` items with at most this many threads, none of which gets fewer than one item."""
        if self.blas:
            with blas.single:
                self._run(workers, n, args)
        else:
            self._run(workers, n, args)

    def _run(self, workers: int, n: int, args: tuple[Any, ...]) -> None:
        if workers > 1 and n > 1:
            with threads.parallel(min(workers, n)) as granted:
                if granted:
                    parts, driver = min(workers, n), driver_address()
                    if (found := self._recent(parts, driver, n, *args)) is not None:
                        self._settle(found, parts, driver, n, args)
                    return
        if (found := self._recent(1, 0, n, *args)) is not None:
            self._settle(found, 1, 0, n, args)

    def _settle(self, found: Any, parts: int, driver: int, n: int, args: tuple[Any, ...]) -> None:
        """Run what the recent code did not run, because it is for other arguments."""
        if found is NotImplemented:
            found = self._other(parts, driver, int(n), tuple(map(normal, args)))
        if found:
            raise MemoryError(f"kernel {self.__name__}: no memory for its working space")

    def _other(self, parts: int, driver: int, n: int, args: tuple[Any, ...]) -> Any:
        words = signature(args) if usable() else None
        code = None if words is None else self._code(words)
        if COMPILE_ONLY.on:
            return None
        if code is not None:
            found = code(parts, driver, n, *args)
            if found is not NotImplemented:
                self._recent = code
                return found
        return (self._dispatcher or self._compile())(driver, parts, 0, n, *args)

    def _code(self, words: tuple[str, ...]) -> Any:
        """The code for a signature, from the cache or compiled; None where only Numba can run it."""
        if words not in self._codes:
            self._make(words)
        return self._codes[words]

    @once
    def _make(self, words: tuple[str, ...]) -> None:
        if words not in self._codes:
            address = self._object(words)
            self._codes[words] = None if address is None else native.function(address, native.FAST)

    def _object(self, words: tuple[str, ...]) -> int | None:
        f, stamp = self.function, cache.source_stamp(self.function, sorted(self.fastmath))
        what = [f.__module__, f.__qualname__, *words]
        brought = shipped.find(["kernel", *what], stamp)

        def make(name: str) -> Any:
            if brought is not None:
                return native.optimise(shipped.parsed_body(brought, name), name)
            background.require()
            numba()
            body = helper(f, fastmath=self.fastmath, inline=False)
            module = kernel_module(body.made, words, name)
            return None if module is None else native.optimise(module, name)

        parts = [*what, cache.versions()]
        if stamp is None:
            found = native.unkept(parts, "mxcore_kernel", make)
        else:
            found = native.kept([*parts, stamp], "mxcore_kernel", make, quick=brought is not None)
        return None if found is None else native.load(found)

    @once
    def _compile(self) -> Any:
        """Numba's own dispatcher, for arguments that have no word."""
        background.require()
        if self._dispatcher is None:
            f, stamp = self.function, cache.source_stamp(self.function, sorted(self.fastmath))
            body = helper(f, fastmath=self.fastmath, inline=False)
            # Numba names cache files by function, file and line: the launcher takes them from the kernel.
            code = _launch_code(f.__code__.co_argcount - 2).replace(
                co_filename=f.__code__.co_filename, co_firstlineno=f.__code__.co_firstlineno
            )
            launch = types.FunctionType(code, {"split": _split, "body": body}, f.__name__)
            launch.__qualname__, launch.__module__ = f.__qualname__, f.__module__
            self._dispatcher = cache.attach(njit(_named(launch, stamp)), stamp)
        return self._dispatcher


@overload
def kernel(
    function: Callable[..., Any], *, threshold: int = ..., fastmath: frozenset[str] = ..., blas: bool = ...
) -> Kernel: ...
@overload
def kernel(
    *, threshold: int = ..., fastmath: frozenset[str] = ..., blas: bool = ...
) -> Callable[[Callable[..., Any]], Kernel]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    threshold: int = 1 << 16,
    fastmath: frozenset[str] = CONTRACT,
    blas: bool = False,
) -> Any:
    """Declare a compute kernel.

    Parameters
    ----------
    function : callable
        ``f(first, last, *args)``: does the items ``range(first, last)`` of a job, writes into the arrays it
        was given, returns nothing. Items may be elements, rows, images: any cut of the range must give the
        same result.
    threshold : int
        Least work, in elements, for more than one thread.
    fastmath : frozenset of str
        LLVM's liberties: :data:`CONTRACT` (fused multiply-add) or :data:`REORDER` (sums in any order as
        well).
    blas : bool
        The kernel calls BLAS from its own threads, so BLAS itself is held at one thread.

    Returns
    -------
    Kernel
        To be called with the number of items, then the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def twice(first, last, x, y):
    ...     for i in range(first, last):
    ...         y[i] = x[i] + x[i]
    >>> y = np.empty(3)
    >>> twice(3, np.arange(3.0), y)
    >>> y
    array([0., 2., 4.])
    """
    if function is None:
        return functools.partial(kernel, threshold=threshold, fastmath=fastmath, blas=blas)
    return Kernel(function, threshold, fastmath, blas)
