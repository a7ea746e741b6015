"""Gradient checks: a function's gradients against central differences along one random direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd
from .._core.context import Context, current_context
from ..base import error
from ..ndarray import NDArray, array
from .keys import get_state, set_state

__all__ = ["check_grads", "grad_of"]


def check_grads(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    order: int | Sequence[int] = 1,
    wrt: Sequence[bool] | None = None,
    ctx: Context | None = None,
    train: bool = True,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    step: float = 1e-5,
    seed: int = 0,
    redraw: Callable[[int], Sequence[Any]] | None = None,
    draws: int = 6,
    names: Sequence[str] | None = None,
) -> None:
    """Check the gradients of a function of arrays.

    The function is weighted with random numbers to a scalar, whose derivative along one random direction is compared
    with a central difference, in float64. Where the differences to the left and right disagree, the point is not
    smooth and another is drawn. In the second order the weights (the head gradients) are variables as well: of a linear
    function, whose gradient depends on nothing else, they alone tell whether that gradient can be differentiated.

    Parameters
    ----------
    fn : callable
        Arrays to an array or a list of arrays. What it draws at random is the same in every call.
    inputs : sequence of array_like
        Where to check; floats are taken as float64, everything else as it is.
    order : {1, 2} or sequence of these
        2 also checks the gradient of the gradient, (2,) that alone.
    wrt : sequence of bool, optional
        Which inputs take part; all floats unless told.
    ctx : Context, optional
    train : bool
        Run in training mode.
    rtol, atol : float
        Tolerances on the derivative, relative to its size and to that of the gradients.
    step : float
        Half the distance of the differences.
    seed : int
        Of weights and directions.
    redraw : callable, optional
        ``redraw(i)`` gives inputs for another try; the inputs are shifted a little unless told.
    draws : int
        How many points to try.
    names : sequence of str, optional
        Of the inputs, for the error.

    Raises
    ------
    AssertionError
        If derivative and difference disagree, with the inputs along which they do; or if no point is smooth.
    MXNetError
        If the function has no gradient.

    Examples
    --------
    >>> import mxcore as mx
    >>> from mxcore.testing.gradcheck import check_grads
    >>> check_grads(lambda x: mx.nd.sin(x) * x, [[0.5, 1.5]], order=2)
    """
    orders = range(1, order + 1) if isinstance(order, int) else order
    if not set(orders) <= {1, 2} or not orders:
        raise error(ValueError, f"check_grads: order must be 1 or 2, got {order!r}")
    rs = np.random.RandomState(seed)
    start = [_double(x) for x in inputs]
    wanted = [a.dtype.kind == "f" for a in start] if wrt is None else [bool(w) for w in wrt]
    called = [f"input {i if names is None else names[i]}" for i in range(len(start))]
    probe = _Probe(fn, wanted, ctx or current_context(), train, rs)
    for level in orders:
        f = (probe.value, probe.slope)[level - 1]
        point = start
        for i in range(draws):
            more = probe.heads(point) if level == 2 else []
            outcome = _compare(
                f,
                [*point, *more],
                [*wanted, *[True] * len(more)],
                rs,
                rtol,
                atol,
                step,
                [*called, *(f"the head gradient of output {j}" for j in range(len(more)))],
            )
            if outcome == "":
                break
            if outcome not in _SAYS_NOTHING:
                raise AssertionError(f"gradient of order {level}: {outcome}")
            point = (
                [_double(x) for x in redraw(i + 1)]
                if redraw
                else [a + rs.uniform(-0.01, 0.01, a.shape) if w else a for a, w in zip(start, wanted)]
            )
        else:
            raise AssertionError(f"gradient of order {level}: of {draws} points all are {outcome}")


def _double(x: Any) -> np.ndarray[Any, Any]:
    a = np.asarray(x)
    return a.astype(np.float64) if a.dtype.kind == "f" else a


class _Probe:
    """The function as a scalar, and its slope along a fixed direction as another scalar, each with its gradients."""

    def __init__(self, fn: Callable[..., Any], wanted: Sequence[bool], ctx: Context, train: bool, rs: Any) -> None:
        self.fn, self.wanted, self.ctx, self.train, self.rs = fn, wanted, ctx, train, rs
        self.weights: list[Any] = []
        self.directions: list[Any] = []
        self.keys = get_state()

    def _run(self, point: Sequence[Any]) -> tuple[list[NDArray], list[NDArray]]:
        """Record a call: variables and float outputs."""
        set_state(self.keys)
        xs = [array(a, ctx=self.ctx, dtype=a.dtype) for a in point]
        for x, w in zip(xs, self.wanted):
            if w:
                x.attach_grad()
        ys = self.fn(*xs)
        return [x for x, w in zip(xs, self.wanted) if w], [
            y for y in (ys if isinstance(ys, (list, tuple)) else [ys]) if np.dtype(y.dtype).kind == "f"
        ]

    def _random(self, kept: list[Any], like: Sequence[Any]) -> list[NDArray]:
        """Fixed random arrays like the given ones."""
        if len(kept) != len(like) or any(a.shape != b.shape for a, b in zip(kept, like)):
            kept[:] = [self.rs.uniform(0.5, 1.5, b.shape) * self.rs.choice([-1, 1], b.shape) for b in like]
        return [array(a, ctx=self.ctx, dtype=b.dtype) for a, b in zip(kept, like)]

    def value(self, point: Sequence[Any]) -> tuple[float, list[Any]]:
        """The weighted sum of the outputs, and its gradients."""
        with autograd.record(self.train):
            xs, ys = self._run(point)
            ws = self._random(self.weights, ys)
        self._backward(ys, ws)
        return _dot(ys, ws), [grad_of(x).asnumpy() for x in xs]

    def heads(self, point: Sequence[Any]) -> list[Any]:
        """The weights of the outputs at a point."""
        with autograd.pause(self.train):
            return [w.asnumpy() for w in self._random(self.weights, self._run(point)[1])]

    def slope(self, point: Sequence[Any]) -> tuple[float, list[Any]]:
        """The derivative of the weighted sum along a direction, and its gradients; the weights follow the inputs."""
        n = len(self.wanted)
        with autograd.record(self.train):
            xs, ys = self._run(point[:n])
            ws = [array(w, ctx=self.ctx, dtype=y.dtype) for w, y in zip(point[n:], ys)]
            for w in ws:
                w.attach_grad()
            pairs = [(y, w) for y, w in zip(ys, ws) if _flows(y)]
            gs = (
                autograd.grad(
                    [y for y, _ in pairs], xs, [w for _, w in pairs], create_graph=True, train_mode=self.train
                )
                if pairs
                else []
            )
            us = self._random(self.directions, gs)
        self._backward(gs, us)
        return _dot(gs, us), [grad_of(x).asnumpy() for x in (*xs, *ws)]

    def _backward(self, heads: Sequence[NDArray], grads: Sequence[NDArray]) -> None:
        pairs = [(h, g) for h, g in zip(heads, grads) if _flows(h)]
        if pairs:
            autograd.backward([h for h, _ in pairs], [g for _, g in pairs], train_mode=self.train)


def grad_of(x: NDArray) -> NDArray:
    """The gradient array of a variable."""
    if x.grad is None:
        raise AssertionError("the array is no variable: it has no gradient")
    return x.grad


def _flows(x: NDArray) -> bool:
    return x._entry is not None and x._entry[0].flows


def _dot(xs: Sequence[NDArray], ws: Sequence[NDArray]) -> float:
    return float(sum((x.asnumpy().astype(np.float64) * w.asnumpy()).sum() for x, w in zip(xs, ws)))


#: What a point may be, so that another is drawn.
_SAYS_NOTHING = _NOT_SMOOTH, _NOT_FINITE = (
    "not smooth; choose inputs away from kinks",
    "without a finite value; choose inputs inside the domain, of a Sample by `domain`",
)


def _compare(
    f: Any,
    point: Sequence[Any],
    wanted: Sequence[bool],
    rs: Any,
    rtol: float,
    atol: float,
    step: float,
    names: Sequence[str],
) -> str:
    """An empty string if the gradients fit, else what is wrong with them or, of `_SAYS_NOTHING`, with the point."""
    way = [rs.uniform(0.5, 1.5, a.shape) * rs.choice([-1, 1], a.shape) if w else None for a, w in zip(point, wanted)]
    middle, grads = f(point)
    directions = [d for d in way if d is not None]
    exact = float(sum((g * d).sum() for g, d in zip(grads, directions)))
    size = 1.0 + float(sum(np.abs(g * d).sum() for g, d in zip(grads, directions)))

    right, left = _beside(f, point, way, step)
    slope = (right - left) / (2 * step)
    if not np.isfinite(slope):
        return _NOT_FINITE
    size = max(size, abs(slope))
    if abs(slope - exact) <= atol + rtol * size:
        return ""
    bend = abs(right - 2 * middle + left) / step  # of the order of the step where the function is smooth
    if bend > 1000 * step * size:
        return _NOT_SMOOTH
    parts = iter(grads)
    for i, d in enumerate(way):  # whose it is
        if d is not None:
            one, (up, down) = (
                float((next(parts) * d).sum()),
                _beside(f, point, [d if j == i else None for j in range(len(way))], step),
            )
            if abs((up - down) / (2 * step) - one) > (atol + rtol * size) / 2 / len(directions):
                return (
                    f"for {names[i]}, along a random direction it is {one!r}, the difference quotient "
                    f"{(up - down) / (2 * step)!r}"
                )
    return f"along a random direction it is {exact!r}, the difference quotient {slope!r}"


def _beside(f: Any, point: Sequence[Any], way: Sequence[Any], step: float) -> tuple[float, float]:
    """The values a step to the right and to the left."""
    right, left = (f([a if d is None else a + h * d for a, d in zip(point, way)])[0] for h in (step, -step))
    return right, left
