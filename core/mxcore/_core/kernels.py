"""Kernels: faster bodies for one device type. A kernel set is inert; the manager registers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import checked
from .context import Context
from .errors import error, in_a_line
from .params import Params, as_dtype

if TYPE_CHECKING:
    from .op import Op

__all__ = ["Kernel", "KernelSet", "Spec", "ranks"]


class Spec:
    """Shape, dtype and storage type of an array, without the array: what the `when` of a kernel gets.

    Parameters
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    stype : str
        ``'default'``, ``'row_sparse'`` or ``'csr'``.
    """

    __slots__ = ("shape", "dtype", "stype")

    def __init__(self, shape: Any, dtype: Any, stype: str = "default") -> None:
        self.shape, self.dtype, self.stype = shape, dtype, stype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def fixed(self) -> bool:
        """Whether a place for the value can be made beforehand: it is dense, of known shape."""
        return self.shape is not None and self.stype == "default"

    def __repr__(self) -> str:
        return f"Spec({self.dtype} {self.shape}{'' if self.stype == 'default' else ' ' + self.stype})"


class Kernel:
    """One kernel of one operator on one device type."""

    __slots__ = ("op", "fn", "dtypes", "when", "priority", "out", "sparse", "short", "owner")

    def __init__(
        self,
        op: str,
        fn: Callable[..., Any],
        dtypes: frozenset[np.dtype[Any]] | None,
        when: Callable[..., bool] | None,
        priority: int,
        out: bool,
        sparse: bool,
        short: Callable[[Context, np.dtype[Any]], Callable[[Any, Any], Any]] | None,
    ) -> None:
        self.op, self.fn, self.dtypes, self.when, self.priority, self.out = op, fn, dtypes, when, priority, out
        self.sparse, self.short = sparse, short
        self.owner = ""

    def fits(self, p: Params, specs: Sequence[Spec]) -> bool:
        """Whether it may run on inputs like these."""
        if self.dtypes is not None and any(s.dtype not in self.dtypes for s in specs):
            return False
        try:
            return self.when is None or bool(self.when(p, *specs))
        except Exception as e:
            raise error(
                RuntimeError,
                f"operator {self.op}: `when` of its kernel by {self.owner} failed "
                f"on {', '.join(map(repr, specs))}: {in_a_line(e)}",
            ) from e

    def overlaps(self, other: Kernel) -> bool:
        """Whether there may be inputs that both fit."""
        return self.dtypes is None or other.dtypes is None or not self.dtypes.isdisjoint(other.dtypes)

    def __repr__(self) -> str:
        return f"<Kernel {self.op} of {self.owner or '?'}>"


def ranks(priority: Any) -> bool:
    """Whether kernels, or graph passes, can be put in order by it."""
    return isinstance(priority, (int, float)) and priority == priority


class KernelSet:
    """A plugin's kernels for one device type.

    Parameters
    ----------
    device : str
        Device type, e.g. ``'cpu'``.

    Examples
    --------
    >>> from mxcore.plugin import KernelSet
    >>> cpu = KernelSet("cpu")
    >>> @cpu.kernel("relu", dtypes="f4 f8")
    ... def relu(k, p, data):
    ...     return k.xp.maximum(data, 0)
    >>> len(cpu)
    1
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.entries: list[Kernel] = []

    def kernel(
        self,
        op: str | Op,
        *,
        dtypes: str | None = None,
        when: Callable[..., bool] | None = None,
        priority: int = 0,
        out: bool = False,
        sparse: bool = False,
        short: Callable[[Context, np.dtype[Any]], Callable[[Any, Any], Any]] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare a kernel: same signature as the reference body, or ``(k, p, outs, *inputs)`` with ``out=True``.

        Parameters
        ----------
        op : str or Op
        dtypes : str, optional
            Blank-separated NumPy type codes or names, one of which every input must have, e.g. ``'f4 f8'`` or
            ``'float32 bfloat16'``; all if omitted.
        when : callable, optional
            ``(p, *specs) -> bool`` over shapes and dtypes of the inputs.
        priority : int
            The highest that fits wins. The reference body comes last.
        out : bool
            The kernel writes into given arrays (`outs`: the outputs, then the mutated inputs; None where nobody
            reads an output), ``outs[0][...] = …``; one that replaces them or returns others is an error.
        sparse : bool
            Of an operator that has a body of its own for sparse values, the kernel is for such, as `when` says; the
            others never see them.
        short : callable, optional
            ``(ctx, dtype) -> (a, b) -> array``: the same kernel for Python's operators over small arrays, without
            what a call costs beside it. `a` is of that dtype and context, of any shape that is not ``()``; `b`
            is such an array of the same shape or, for an operator with a parameter `scalar`, its number. The result is
            a new, dense array of their shape and dtype. Whatever `when` says must hold for all of them.
        """
        name = op if isinstance(op, str) else op.name
        if not ranks(priority):
            raise error(TypeError, f"kernel of operator {name}: priority must be a number, got {priority!r}")
        wanted = None if dtypes is None else frozenset(map(as_dtype, dtypes.split()))

        def deco(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.entries.append(checked("kernel", Kernel(name, fn, wanted, when, priority, out, sparse, short)))
            return fn

        return deco

    def __len__(self) -> int:
        return len(self.entries)
