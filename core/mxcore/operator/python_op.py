"""Operators in Python as MXNet had them before `CustomOp`: objects that are called to make a symbol."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.errors import error
from ..name import NameManager
from ..ops.custom.operators import enter
from .custom import CustomOp, CustomOpProp

__all__ = ["NDArrayOp", "NumpyOp", "PythonOp"]

_serial = itertools.count()


class PythonOp:
    """What `NumpyOp` and `NDArrayOp` share; derive from one of those, or better from `CustomOp`.

    Calling the object (or `get_symbol`) with symbols gives a symbol. The object does the computing, so the symbol can
    be bound in this process only: its JSON names an operator that other processes do not know.

    Parameters
    ----------
    need_top_grad : bool
        Whether `backward` uses the gradients of the outputs; a loss does not.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.operator.PythonOp``. There ``NumpyOp`` ends the process; here it works.
    """

    #: The word for names of symbols that the user does not name.
    _hint = "_python"
    _hand: Any = None

    def __init__(self, need_top_grad: bool = True) -> None:
        warnings.warn(
            "NumpyOp and NDArrayOp are MXNet's old way to write operators; use mx.operator.CustomOp",
            DeprecationWarning,
            stacklevel=2,
        )
        self.info_: str | None = None
        self.need_top_grad_ = need_top_grad

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args: Any, **kwargs: Any) -> Any:
        """Make a symbol that applies this operator.

        Parameters
        ----------
        *args, **kwargs : Symbol
            The inputs, in order or by the names of `list_arguments`; those left out become variables. Also ``name`` and
            ``attr``.

        Returns
        -------
        Symbol

        Raises
        ------
        MXNetError
            (also NotImplementedError) if the class is neither a `NumpyOp` nor an `NDArrayOp`.
        """
        if self._hand is None:
            raise error(
                NotImplementedError,
                f"{type(self).__name__}.get_symbol: derive from NumpyOp, "
                "NDArrayOp or CustomOp, not from PythonOp itself",
            )
        from .. import symbol

        if self.info_ is None:
            self.info_ = f"{self._hint}_{type(self).__name__}_{next(_serial)}"
            enter(self.info_, type("_Prop", (_Prop,), {"old": self}))
        kwargs["name"] = NameManager.current.get(kwargs.get("name"), self._hint)
        return symbol.Custom(*args, op_type=self.info_, **kwargs)

    def forward(self, in_data: list[Any], out_data: list[Any]) -> None:
        """Compute the outputs in place; this one hands the first input on."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any]) -> None:
        """Compute the gradients of the inputs in place; this one says 1."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape: list[Any]) -> tuple[list[Any], list[Any]]:
        """Shapes of (inputs, outputs); this one has an output like the first input."""
        return in_shape, [in_shape[0]]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def need_top_grad(self) -> bool:
        """Whether `backward` uses the gradients of the outputs."""
        return self.need_top_grad_


class NumpyOp(PythonOp):
    """An operator whose `forward` and `backward` get NumPy arrays, and write to those of outputs and gradients.

    Parameters
    ----------
    need_top_grad : bool
        Whether `backward` uses the gradients of the outputs; a loss does not.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Square(mx.operator.NumpyOp):
    ...     def forward(self, in_data, out_data):
    ...         out_data[0][:] = in_data[0] ** 2
    ...     def backward(self, out_grad, in_data, out_data, in_grad):
    ...         in_grad[0][:] = 2 * in_data[0] * out_grad[0]
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     square = Square()
    >>> square(mx.sym.Variable("x"), name="sq").eval(x=mx.nd.array([3]))[0].asscalar().item()
    9.0
    """

    _hint = "_native"

    @staticmethod
    def _hand(arrays: list[Any]) -> list[Any]:
        return [np.array(a.asnumpy()) for a in arrays]


class NDArrayOp(PythonOp):
    """An operator whose `forward` and `backward` get NDArrays.

    Parameters
    ----------
    need_top_grad : bool
        Whether `backward` uses the gradients of the outputs; a loss does not.
    """

    _hint = "_ndarray"

    @staticmethod
    def _hand(arrays: list[Any]) -> list[Any]:
        return arrays

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads; all are kept here, whatever this returns."""
        return [*(out_grad if self.need_top_grad() else []), *in_data, *out_data]


class _Worker(CustomOp):
    """Runs the methods of an old operator."""

    def __init__(self, old: PythonOp) -> None:
        self.old = old

    def forward(
        self, is_train: bool, req: Sequence[str], in_data: Sequence[Any], out_data: Sequence[Any], aux: Sequence[Any]
    ) -> None:
        self._run(self.old.forward, req, "out_data", out_data, in_data=in_data)

    def backward(
        self,
        req: Sequence[str],
        out_grad: Sequence[Any],
        in_data: Sequence[Any],
        out_data: Sequence[Any],
        in_grad: Sequence[Any],
        aux: Sequence[Any],
    ) -> None:
        self._run(self.old.backward, req, "in_grad", in_grad, out_grad=out_grad, in_data=in_data, out_data=out_data)

    def _run(
        self, method: Callable[..., Any], req: Sequence[str], name: str, targets: Sequence[Any], **read: Sequence[Any]
    ) -> None:
        """Call a method; what it writes goes to the targets."""
        hand = self.old._hand
        written = hand(targets)
        method(**{name: written}, **{n: hand(arrays) for n, arrays in read.items()})
        for target, how, value in zip(targets, req, written):
            if value is not target:
                self.assign(target, how, value)


class _Prop(CustomOpProp):
    """What is known of an old operator; a subclass holds it."""

    old: PythonOp

    def __init__(self) -> None:
        super().__init__(self.old.need_top_grad())

    def list_arguments(self) -> list[str]:
        return self.old.list_arguments()

    def list_outputs(self) -> list[str]:
        return self.old.list_outputs()

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return (*self.old.infer_shape(in_shape), [])

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        return _Worker(self.old)
