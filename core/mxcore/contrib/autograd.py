"""The automatic differentiation of MXNet 0.9, over that of today (``mx.autograd``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd
from .._reexports import reexports
from ..base import error
from ..ndarray import NDArray, zeros_like

__all__ = [
    "TrainingStateScope",
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
    "test_section",
    "train_section",
]


def set_is_training(is_train: bool) -> bool:
    """Switch training mode and recording on or off in this thread; returns what training mode was.

    >>> old = set_is_training(True)
    >>> set_is_training(old)
    True
    """
    autograd.set_recording(is_train)
    return autograd.set_training(is_train)


class TrainingStateScope(autograd.RecordingScope):
    """A with-block in training mode that is recorded, or in neither; `train_section` and `test_section` make it.

    Parameters
    ----------
    enter_state : bool
    """

    def __init__(self, enter_state: bool) -> None:
        super().__init__(bool(enter_state), bool(enter_state))


def train_section() -> TrainingStateScope:
    """A with-block whose operators are recorded, in training mode.

    >>> import mxcore as mx
    >>> x, g = mx.nd.array([1, 2]), mx.nd.zeros(2)
    >>> mark_variables([x], [g])
    >>> with train_section():
    ...     y = x * x
    >>> compute_gradient([y])
    >>> g.asnumpy().tolist()
    [2.0, 4.0]
    """
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """A with-block inside of `train_section` that is not recorded."""
    return TrainingStateScope(False)


test_section.__test__ = False  # type: ignore[attr-defined]  # no test for pytest


def mark_variables(variables: Sequence[NDArray], gradients: Sequence[NDArray], grad_reqs: Any = "write") -> None:
    """Give arrays the arrays that their gradients are written to; see ``mx.autograd.mark_variables``."""
    autograd.mark_variables(variables, gradients, grad_reqs)


def backward(outputs: Sequence[NDArray], out_grads: Any = None, retain_graph: bool = False) -> None:
    """Compute gradients of outputs into those of the variables; see ``mx.autograd.backward``."""
    if not isinstance(outputs, (list, tuple)):
        raise error(TypeError, f"outputs must be a list or tuple of NDArrays, got {type(outputs).__name__}")
    autograd.backward(list(outputs), None if out_grads is None else list(out_grads), retain_graph=retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """Compute gradients of outputs into those of the variables."""
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., Any]:
    """A function that gives the gradients of another, and what that gives.

    Parameters
    ----------
    func : callable
        From arrays to an array or several.
    argnum : int or list of int, optional
        The arguments to differentiate by; all by default.

    Examples
    --------
    >>> import mxcore as mx
    >>> gradients, loss = grad_and_loss(lambda a, b: a * b)(mx.nd.array([2]), mx.nd.array([3]))
    >>> [g.asnumpy().tolist() for g in gradients], loss.asnumpy().tolist()
    ([[3.0], [2.0]], [6.0])
    """
    if argnum is not None and not isinstance(argnum, int) and not all(isinstance(i, int) for i in argnum):
        raise error(TypeError, f"argnum must be a number or a list of numbers of arguments, got {argnum!r}")

    @functools.wraps(func)
    def wrapped(*args: Any) -> Any:
        variables = (
            list(args) if argnum is None else [args[i] for i in ([argnum] if isinstance(argnum, int) else argnum)]
        )
        for v in variables:
            if not isinstance(v, NDArray):
                raise error(
                    TypeError,
                    f"{getattr(func, '__name__', 'the function')} "
                    f"is differentiated by NDArrays, got {type(v).__name__}",
                )
        gradients = [zeros_like(v) for v in variables]
        mark_variables(variables, gradients)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return gradients, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable[..., Any]:
    """A function that gives the gradients of another; see `grad_and_loss`.

    >>> import mxcore as mx
    >>> grad(lambda a: a * a)(mx.nd.array([3]))[0].asnumpy().tolist()
    [6.0]
    """
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args: Any) -> Any:
        return both(*args)[0]

    return wrapped


__getattr__ = reexports(__name__)
