"""Operators in Python: what they compute (`CustomOp`) and what is known before (`CustomOpProp`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import error
from ..ops.custom.operators import enter

__all__ = ["CustomOp", "CustomOpProp", "register"]


class CustomOp:
    """Base class of operators in Python: define `forward` and `backward`.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Double(mx.operator.CustomOp):
    ...     def forward(self, is_train, req, in_data, out_data, aux):
    ...         self.assign(out_data[0], req[0], in_data[0] * 2)
    ...     def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
    ...         self.assign(in_grad[0], req[0], out_grad[0] * 2)
    >>> @mx.operator.register("doc_double")
    ... class DoubleProp(mx.operator.CustomOpProp):
    ...     def create_operator(self, ctx, shapes, dtypes):
    ...         return Double()
    >>> mx.nd.Custom(mx.nd.array([3]), op_type="doc_double").asscalar().item()
    6.0
    """

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        """Compute `out_data` from `in_data`; `req` says how to write each ('null', 'write', 'add')."""
        raise NotImplementedError(f"{type(self).__name__} must define forward()")

    def backward(
        self,
        req: list[str],
        out_grad: list[Any],
        in_data: list[Any],
        out_data: list[Any],
        in_grad: list[Any],
        aux: list[Any],
    ) -> None:
        """Compute `in_grad` from `out_grad`; without a definition the gradient is zero."""

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Write `src` to `dst` as `req` says."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] = dst + src
        elif req != "null":
            raise error(ValueError, f"CustomOp.assign: req must be 'null', 'write', 'inplace' or 'add', got {req!r}")


class CustomOpProp:
    """Base class of what is known of an operator in Python before it runs.

    Parameters
    ----------
    need_top_grad : bool
        Whether `backward` uses the gradients of the outputs; a loss does not.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of (inputs, outputs, auxiliary states); all as the first input unless overridden."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type: list[Any]) -> Any:
        """Types of (inputs, outputs, auxiliary states), None where unknown; by default those of the first input."""
        first = in_type[0]
        return in_type, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: list[str]) -> Any:
        """Storage types of (inputs, outputs, auxiliary states): all 'default', for all of them are dense."""
        return in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(
        self,
        ograd_stype: list[str],
        in_stype: list[str],
        out_stype: list[str],
        igrad_stype: list[str],
        aux_stype: list[str],
    ) -> Any:
        """Storage types of gradients of outputs, inputs, outputs, gradients of inputs and states: all 'default'."""
        return tuple(["default"] * len(listed) for listed in (ograd_stype, in_stype, out_stype, igrad_stype, aux_stype))

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` reads; all are kept, but without any of `out_grad` it is a loss."""
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[Any], in_dtypes: list[Any]) -> CustomOp:
        """Make the operator for inputs of these shapes and types."""
        raise NotImplementedError(f"{type(self).__name__} must define create_operator()")


def register(reg_name: str) -> Callable[[type], type]:
    """Decorate a CustomOpProp: its operator becomes ``mx.nd.Custom(..., op_type=reg_name)``, also in ``mx.sym``."""

    def deco(cls: type) -> type:
        if not (isinstance(cls, type) and issubclass(cls, CustomOpProp)):
            raise error(
                TypeError, f"operator.register({reg_name!r}) decorates a class derived from CustomOpProp, got {cls!r}"
            )
        enter(reg_name, cls)
        return cls

    return deco
