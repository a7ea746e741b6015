"""The fully connected layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..block import HybridBlock
from .activations import Activation

if TYPE_CHECKING:
    from ...initializer import Initializer

__all__ = ["Dense"]


def activation_or_none(activation: str | None) -> Activation | None:
    """The block of a layer's `activation` argument; call it inside the layer's name scope."""
    return None if activation is None else Activation(activation, prefix=activation + "_")


class Dense(HybridBlock):
    """Fully connected layer: ``activation(x · weightᵀ + bias)``.

    Parameters
    ----------
    units : int
        Size of the output.
    activation : str, optional
        Name of an `Activation`; none by default.
    use_bias : bool, default True
    flatten : bool, default True
        Take all axes but the first as one. If False, only the last axis is transformed.
    dtype : str or numpy dtype, default 'float32'
    weight_initializer, bias_initializer : Initializer or str, optional
    in_units : int, default 0
        Size of the input; 0 takes it from the first batch.
    **kwargs
        prefix, params.

    Notes
    -----
    Input ``(N, ...)``, output ``(N, units)``, or ``(..., units)`` without flattening. Behaviour matched:
    MXNet 1.9.1 ``gluon.nn.Dense``.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Dense(2, activation='relu')
    >>> layer.initialize()
    >>> layer(mx.nd.ones((4, 3, 5))).shape, layer.weight.shape
    ((4, 2), (2, 15))
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        flatten: bool = True,
        dtype: Any = "float32",
        weight_initializer: Initializer | str | None = None,
        bias_initializer: Initializer | str | None = "zeros",
        in_units: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._units = units
        self._in_units = in_units
        self._flatten = flatten
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True
            )
            self.bias = (
                self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = activation_or_none(activation)

    def __repr__(self) -> str:
        shape = self.weight.shape
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}, {self.act or 'linear'})"

    def infer_shape(self, x: Any, *args: Any) -> None:
        self.weight.shape = (self._units, math.prod(x.shape[1:]) if self._flatten else x.shape[-1])

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        if bias is None:
            y = F.FullyConnected(x, weight, no_bias=True, num_hidden=self._units, flatten=self._flatten, name="fwd")
        else:
            y = F.FullyConnected(
                x, weight, bias, no_bias=False, num_hidden=self._units, flatten=self._flatten, name="fwd"
            )
        return y if self.act is None else self.act(y)
