"""Samples of the operators of :mod:`mxcore.ops.custom`."""

from __future__ import annotations

from typing import Any

from ...testing.sample import Sample
from .operators import PROPS

__all__ = ["SAMPLES"]


class _Twice:
    """What a sample runs; written without the base classes, which sit above the operators."""

    list_arguments = staticmethod(lambda: ["data"])
    list_outputs = staticmethod(lambda: ["output"])
    list_auxiliary_states: Any = staticmethod(list)
    declare_backward_dependency = staticmethod(lambda dys, ins, outs: dys)
    infer_shape: Any = staticmethod(lambda shapes: (shapes, [shapes[0]], []))
    infer_type: Any = staticmethod(lambda types: (types, [types[0]], []))

    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Any:
        return self

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        out_data[0][:] = in_data[0] * 2

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        in_grad[0][:] = out_grad[0] * 2


class _Blend(_Twice):
    """Two inputs, two outputs and a keyword, which comes as a string."""

    list_arguments = staticmethod(lambda: ["first", "second"])
    list_outputs = staticmethod(lambda: ["mixed", "difference"])
    infer_shape: Any = staticmethod(lambda shapes: (shapes, [shapes[0]] * 2, []))
    infer_type: Any = staticmethod(lambda types: (types, [types[0]] * 2, []))

    def __init__(self, part: Any) -> None:
        self.part = float(part)

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        first, second = in_data
        out_data[0][:] = first * self.part + second * (1 - self.part)
        out_data[1][:] = first - second

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        mixed, difference = out_grad
        in_grad[0][:] = mixed * self.part + difference
        in_grad[1][:] = mixed * (1 - self.part) - difference


class _Count(_Twice):
    """An auxiliary state: how often it ran in training."""

    list_auxiliary_states = staticmethod(lambda: ["count"])
    infer_shape = staticmethod(lambda shapes: (shapes, [shapes[0]], [[1]]))
    infer_type = staticmethod(lambda types: (types, [types[0]], [types[0]]))

    def forward(self, is_train: Any, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        super().forward(is_train, req, in_data, out_data, aux)
        aux[0][:] += is_train


PROPS.update(_sample_twice=_Twice, _sample_blend=_Blend, _sample_count=_Count)


SAMPLES = {
    "Custom": [
        Sample((2, 3), params={"op_type": "_sample_twice"}, mxnet="needs a registered class"),
        Sample((2, 3), (2, 3), params={"op_type": "_sample_blend", "part": 0.25}, mxnet="needs a registered class"),
        Sample(
            (4,), [0.0], params={"op_type": "_sample_count"}, mxnet="needs a registered class", grad=(1, 0), train=True
        ),
    ]
}
