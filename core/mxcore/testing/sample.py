"""Samples: declared uses of an operator, from which tests, golden files and benchmarks draw.

This module needs NumPy only, so that it also runs beside the real MXNet when golden files are made.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Sample", "Ints", "Distinct", "Values"]


class Values:
    """Inputs drawn uniformly from an interval.

    Parameters
    ----------
    shape : tuple of int
    low, high : float
        The interval; choose it inside the operator's domain and away from kinks.
    dtype : str, optional
        Fixed dtype; the sample's dtype unless told.
    """

    def __init__(self, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0, dtype: str | None = None) -> None:
        if not low <= high:
            raise ValueError(
                f"{type(self).__name__}: the interval from {low} to {high} is empty; the lower end is first"
            )
        self.shape, self.low, self.high, self.dtype = tuple(shape), low, high, dtype

    def draw(self, rs: np.random.RandomState) -> np.ndarray:
        """The values, as float64."""
        return rs.uniform(self.low, self.high, self.shape)


class Ints(Values):
    """Whole numbers from [low, high)."""

    def draw(self, rs: np.random.RandomState) -> np.ndarray:
        return rs.randint(int(self.low), int(self.high), self.shape).astype(np.float64)


class Distinct(Values):
    """A shuffled, evenly spaced set over the interval: no ties, no near ties."""

    def draw(self, rs: np.random.RandomState) -> np.ndarray:
        n = int(np.prod(self.shape))
        return rs.permutation(np.linspace(self.low, self.high, n) if n else np.zeros(0)).reshape(self.shape)


class Sample:
    """One use of an operator.

    Parameters
    ----------
    *inputs : tuple of int, array_like, Values
        One per input, in order: a shape (values from `domain`), fixed values, or a way to draw them. Fixed values are
        cast to the dtype of the run, except NumPy arrays of another dtype than float64.
    params : dict, optional
        Parameters of the operator.
    domain : (float, float)
        Interval for inputs given as shapes.
    dtypes : str
        Blank-separated dtypes to run in.
    grad : bool or str or tuple of bool
        Whether gradients are derivatives, and so checked: for all float inputs but `Ints` and states (those that the
        operator writes), for none, for the inputs of these names, separated by blanks, or as it is told of each.
    train : bool
        Run in training mode.
    check : callable, optional
        For random operators: ``check(inputs, outputs)`` raises if the outputs are implausible; values are not compared.
    mxnet : bool or str
        Whether the real MXNet 1.9.1 can run it the same way; else False or the reason, which begins with ``forward
        only:`` where all but gradients is comparable, and with ``outputs only:`` where written inputs are not, either.
    tol : float
        Factor on the tolerances of the dtype.
    step : int
        How far whole numbers in the outputs may be off: 1 where they are rounded from numbers that may lie between two
        of them.
    """

    def __init__(
        self,
        *inputs: Any,
        params: dict[str, Any] | None = None,
        domain: tuple[float, float] = (-2.0, 2.0),
        dtypes: str = "float32 float64",
        grad: bool | str | Sequence[int] = True,
        train: bool = False,
        check: Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None] | None = None,
        mxnet: bool | str = True,
        tol: float = 1.0,
        step: int = 0,
    ) -> None:
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(f"Sample: params must be a dict of parameters by name, got {params!r}")
        if len(domain) != 2 or not domain[0] <= domain[1]:
            raise ValueError(f"Sample: domain must be (low, high), got {domain!r}")
        if not isinstance(grad, (bool, str, Sequence)):
            raise TypeError(f"Sample: grad must be a bool, names of inputs, or a bool for each of them, got {grad!r}")
        if isinstance(grad, Sequence) and any(isinstance(g, str) for g in grad):
            grad = grad if isinstance(grad, str) else " ".join(grad)  # type: ignore[arg-type]
        elif isinstance(grad, Sequence) and len(grad) != len(inputs):
            raise ValueError(f"Sample: grad={grad!r} must be a bool, or have one for each of {len(inputs)} inputs")
        self.inputs, self.params, self.domain = inputs, dict(params or {}), domain
        self.dtypes = tuple(dtypes.split())
        try:
            known = [np.dtype(t) for t in self.dtypes]
        except TypeError:
            known = []
        if not known:
            raise ValueError(
                f"Sample: dtypes must be names like 'float32 float64', separated by blanks, got {dtypes!r}"
            )
        self.grad, self.train, self.check, self.mxnet, self.tol, self.step = grad, train, check, mxnet, tol, step

    def arrays(self, dtype: str, salt: int = 0) -> list[np.ndarray]:
        """The inputs in `dtype`; the same for the same sample, dtype and salt."""
        rs = np.random.RandomState(zlib.crc32(repr((self.params, len(self.inputs), salt)).encode()) & 0x7FFFFFFF)
        out = []
        for spec in self.inputs:
            if isinstance(spec, tuple) and all(isinstance(d, int) for d in spec):
                spec = Values(spec, *self.domain)
            with np.errstate(over="ignore"):  # what float16 cannot hold is infinite there
                if isinstance(spec, Values):
                    a = spec.draw(rs).astype(spec.dtype or dtype)
                else:
                    a = np.asarray(spec)
                    if not isinstance(spec, np.ndarray) or a.dtype == np.float64:
                        a = a.astype(dtype)
            out.append(np.ascontiguousarray(a).reshape(a.shape))  # which makes vectors of numbers
        return out

    def wants_grad(self, arrays: Sequence[np.ndarray], names: Sequence[str] = ()) -> list[bool]:
        """Which inputs, of these names, take part in gradient checks, as far as the sample says."""
        if isinstance(self.grad, str):
            wanted = self.grad.split()
            if lost := [n for n in wanted if n not in names]:
                raise ValueError(
                    f"{self!r}: no input is named {lost[0]!r} as in its grad; there are {', '.join(names)}"
                )
            return [n in wanted for n in names]
        if isinstance(self.grad, bool):
            return [self.grad and a.dtype.kind == "f" and not isinstance(s, Ints) for a, s in zip(arrays, self.inputs)]
        return [bool(g) and a.dtype.kind not in "iub" for g, a in zip(self.grad, arrays)]

    def __repr__(self) -> str:
        ins = ", ".join(
            str(tuple(np.shape(i)) if not isinstance(i, (Values, tuple)) else getattr(i, "shape", i))
            for i in self.inputs
        )
        return f"Sample({ins}{', ' if self.params else ''}{', '.join(f'{k}={v!r}' for k, v in self.params.items())})"
