"""Activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import initializer
from ...base import error
from ..block import HybridBlock

if TYPE_CHECKING:
    from ...initializer import Initializer

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "Swish"]


class Activation(HybridBlock):
    """An activation by name.

    Parameters
    ----------
    activation : {'relu', 'sigmoid', 'log_sigmoid', 'tanh', 'softrelu', 'softsign', 'mish'}
    **kwargs
        prefix, params.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.Activation``.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.gluon.nn.Activation('relu')(mx.nd.array([-1, 2])).asnumpy().tolist()
    [0.0, 2.0]
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Activation(x, act_type=self._act_type, name="fwd")


class LeakyReLU(HybridBlock):
    """``x`` where positive, ``alpha * x`` elsewhere.

    Parameters
    ----------
    alpha : float
        Slope on the negative side, at least 0.
    **kwargs
        prefix, params.
    """

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        if alpha < 0:
            raise error(AssertionError, f"Slope coefficient for LeakyReLU must be no less than 0, got {alpha}.")
        super().__init__(**kwargs)
        self._alpha = alpha

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")


class PReLU(HybridBlock):
    """Leaky ReLU with a learnt slope, one for all or one a channel (He et al., 2015, arXiv:1502.01852).

    Parameters
    ----------
    alpha_initializer : Initializer or str, optional
        By default the constant 0.25.
    in_channels : int, default 1
        1 for a common slope, else the number of channels (axis 1).
    **kwargs
        prefix, params.
    """

    def __init__(self, alpha_initializer: Initializer | str | None = None, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        init = initializer.Constant(0.25) if alpha_initializer is None else alpha_initializer
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere (Clevert et al., 2016, arXiv:1511.07289).

    Parameters
    ----------
    alpha : float, default 1.0
    **kwargs
        prefix, params.
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """Scaled exponential linear unit (Klambauer et al., 2017, arXiv:1706.02515)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """Gaussian error linear unit, ``x * Phi(x)`` (Hendrycks and Gimpel, 2016, arXiv:1606.08415)."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """``x * sigmoid(beta * x)`` (Ramachandran et al., 2017, arXiv:1710.05941).

    Parameters
    ----------
    beta : float, default 1.0
    **kwargs
        prefix, params.
    """

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * F.sigmoid(self._beta * x, name="fwd")
