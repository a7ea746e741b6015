"""Kernels of CUDA C compiled at run time, as ``mxnet.rtc``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ._core.context import Context, current_context
from ._core.engine import engine
from ._core.errors import MXNetError, explained
from ._core.stream import ordered
from ._core.transfer import guard_write
from ._reexports import reexports
from .base import error
from .ndarray import NDArray

__all__ = ["CudaKernel", "CudaModule"]

#: Type in C -> dtype of an argument.
_DTYPES = {
    name: np.dtype(dtype)
    for name, dtype in {
        "float": "float32",
        "double": "float64",
        "__half": "float16",
        "uint8_t": "uint8",
        "int": "int32",
        "int32_t": "int32",
        "int8_t": "int8",
        "char": "int8",
        "int64_t": "int64",
    }.items()
}
_ARGUMENT = re.compile(r"(const )?\s*(\w+)\s*(\*)?\s*(?:__restrict__ ?)?(\w+)?")


class _Argument(NamedTuple):
    """What a signature says of an argument: is it only read, its dtype, is it an array."""

    const: bool
    dtype: np.dtype[Any]
    array: bool


class CudaModule:
    """A module of CUDA C, compiled for the GPU at hand: the current context if it is one, else the first.

    Parameters
    ----------
    source : str
        Code. Kernels are found by their names if they are ``extern "C"``, or if `exports` names them.
    options : str or tuple of str
        For the compiler, such as ``'-DN=3'``. The architecture is that of the GPU, whatever they say.
    exports : str or tuple of str
        Names of further kernels, such as ``'axpy<float>'`` of a template.

    Raises
    ------
    MXNetError
        If there is no GPU, with the reason, or if the compiler refuses the source, with what it says.

    Examples
    --------
    ::

        source = r'''
        extern "C" __global__ void axpy(const float *x, float *y, float alpha) {
            int i = threadIdx.x + blockIdx.x * blockDim.x;
            y[i] += alpha * x[i];
        }
        '''
        axpy = mx.rtc.CudaModule(source).get_kernel("axpy", "const float *x, float *y, float alpha")
        x, y = mx.nd.ones(10, ctx=mx.gpu(0)), mx.nd.zeros(10, ctx=mx.gpu(0))
        axpy.launch([x, y, 3.0], mx.gpu(0), (1, 1, 1), (10, 1, 1))
    """

    def __init__(self, source: str, options: Any = (), exports: Any = ()) -> None:
        if not isinstance(source, str):
            raise error(TypeError, f"CudaModule: source must be the text of CUDA C, got {type(source).__name__}")
        here = current_context()
        self._ctx = here if here.device_type == "gpu" else Context("gpu", 0)
        self._compile = partial(
            self._ctx.device.compile_source, source, _texts(options, "options"), _texts(exports, "exports")
        )
        self._found = {self._ctx.device_id: self._compile(self._ctx.device_id)}

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """The kernel of a name.

        Parameters
        ----------
        name : str
        signature : str
            Its arguments as C has them, with or without their names: ``"const float *x, float *y, int n"``. What is
            `const` is only read.

        Raises
        ------
        MXNetError
            If there is no such kernel, or the signature cannot be understood.
        """
        arguments = [_argument(text) for text in signature.split(",")] if signature.strip() else []
        kernel = CudaKernel(
            self, name, [a.array for a in arguments], [a.dtype for a in arguments], [a.const for a in arguments]
        )
        kernel._on(self._ctx.device_id)  # an error where there is none of that name
        return kernel

    def _on(self, index: int) -> Any:
        """What finds its kernels on a GPU."""
        if index not in self._found:
            self._found[index] = self._compile(index)
        return self._found[index]


class CudaKernel:
    """A kernel of a `CudaModule`, whose `get_kernel` makes it."""

    def __init__(
        self, handle: Any, name: str, is_ndarray: Sequence[bool], dtypes: Sequence[Any], is_const: Sequence[bool] = ()
    ) -> None:
        if not isinstance(handle, CudaModule):
            raise error(TypeError, "CudaKernel: mx.rtc.CudaModule.get_kernel makes kernels of CUDA C")
        self._module, self._name = handle, name
        const = is_const or [False] * len(dtypes)
        self._arguments = [_Argument(*a) for a in zip(const, map(np.dtype, dtypes), is_ndarray)]
        self._launchers: dict[int, Any] = {}

    def launch(self, args: Any, ctx: Any, grid_dims: Any, block_dims: Any, shared_mem: int = 0) -> None:
        """Run the kernel, in the order of everything else that is done with its arrays.

        Parameters
        ----------
        args : sequence of NDArray and numbers
            As the signature says.
        ctx : Context
            A GPU, on which the arrays are.
        grid_dims, block_dims : tuple of int
            How many blocks, and threads of a block, along x, y and z.
        shared_mem : int
            Bytes of ``extern __shared__`` memory.
        """
        ctx = Context(ctx)
        if ctx.device_type != "gpu":
            raise error(ValueError, f"{self}: it runs on a GPU, not on {ctx}")
        if len(args) != len(self._arguments):
            raise error(ValueError, f"{self} takes {len(self._arguments)} arguments, got {len(args)}")
        grid, block = self._dims("grid_dims", grid_dims), self._dims("block_dims", block_dims)
        given = [self._given(i, v, a, ctx) for i, (v, a) in enumerate(zip(args, self._arguments))]
        arrays = [(v, a.const) for v, a in zip(args, self._arguments) if a.array]
        for x, const in arrays:
            if not const:
                guard_write(x, str(self))
        reads = [x._st for x, const in arrays if const]
        writes = [x._st for x, const in arrays if not const]
        where = self._on(ctx.device_id)
        ordered(ctx, self._run, (where, ctx, grid, block, int(shared_mem), given), reads, writes, str(self))

    def _run(self, launcher: Any, ctx: Context, grid: Any, block: Any, shared: int, values: Sequence[Any]) -> None:
        device = ctx.device
        dense = [
            device.xp.ascontiguousarray(v) if a.array and not v.flags.c_contiguous else v
            for v, a in zip(values, self._arguments)
        ]
        try:
            launcher(grid, block, shared, dense)
        except Exception as e:
            told = explained(e)
            raise error(type(told) if isinstance(told, MXNetError) else RuntimeError, f"{self}: {told}") from e
        for near, far, a in zip(dense, values, self._arguments):
            if near is not far and not a.const:
                device.copy(near, far)
        if engine.it.naive:
            device.synchronize(ctx.device_id)

    def _on(self, index: int) -> Any:
        found = self._launchers.get(index)
        if found is None:
            found = self._module._on(index)(self._name, [(a.dtype, a.array) for a in self._arguments])
            self._launchers[index] = found
        return found

    def _given(self, i: int, v: Any, a: _Argument, ctx: Context) -> Any:
        """An argument as it is launched with."""
        if not a.array:
            if not isinstance(v, (int, float, np.number, np.bool_)):
                raise error(TypeError, f"{self}: argument {i} must be a number ({a.dtype}), got {type(v).__name__}")
            if a.dtype.kind in "iu":
                ends = np.iinfo(a.dtype)
                if v != v or not ends.min <= v <= ends.max or v != int(v):
                    raise error(ValueError, f"{self}: argument {i} must be a whole number of {a.dtype}, got {v}")
            return a.dtype.type(v)
        if not isinstance(v, NDArray) or v.stype != "default":
            kind = type(v).__name__
            raise error(TypeError, f"{self}: argument {i} must be a dense NDArray of {a.dtype}, got {kind}")
        if v._data.dtype != a.dtype:
            raise error(TypeError, f"{self}: argument {i} must be an NDArray of {a.dtype}, got one of {v._data.dtype}")
        if v.context != ctx:
            raise error(ValueError, f"{self}: argument {i} must be on {ctx}, it is on {v.context}")
        return v._data

    def _dims(self, what: str, dims: Any) -> tuple[int, int, int]:
        try:
            x, y, z = map(int, dims)
        except (TypeError, ValueError):
            raise error(ValueError, f"{self}: {what} must be three whole numbers, got {dims!r}") from None
        if min(x, y, z) < 1:
            raise error(ValueError, f"{self}: {what} must be 1 or more each, got {dims!r}")
        return x, y, z

    def __repr__(self) -> str:
        return f"CudaKernel({self._name})"


def _texts(given: Any, what: str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(t, str) for t in texts):
        raise error(TypeError, f"CudaModule: {what} must be texts, got {given!r}")
    return texts


def _argument(text: str) -> _Argument:
    """What one argument of a signature says."""
    text = " ".join(text.split())
    found = _ARGUMENT.fullmatch(text)
    if found is None or found[2] == "const":
        raise error(ValueError, f"get_kernel: the argument {text!r} is not of the form '(const) type (*) (name)'")
    if found[2] not in _DTYPES:
        raise error(TypeError, f"get_kernel: the argument {text!r} is of none of the types {', '.join(_DTYPES)}")
    return _Argument(bool(found[1]), _DTYPES[found[2]], bool(found[3]))


__getattr__ = reexports(__name__)
