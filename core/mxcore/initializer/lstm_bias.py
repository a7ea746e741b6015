"""The bias of an LSTM."""

from __future__ import annotations

from ..ndarray import NDArray
from .base import Initializer


class LSTMBias(Initializer):
    """Fill the bias of an LSTM cell with zeros, but that of the forget gate with `forget_bias`.

    Parameters
    ----------
    forget_bias : float
        Bias of the second of the four gates.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.LSTMBias``; Jozefowicz, Zaremba and Sutskever, "An empirical
    exploration of recurrent network architectures" (ICML 2015). It works as the initializer of the
    variable, not of the network: ``mx.sym.Variable("bias", init=mx.init.LSTMBias())``.

    Examples
    --------
    >>> import mxcore as mx
    >>> a = mx.nd.zeros(8)
    >>> mx.init.Zero()(mx.init.InitDesc("lstm_bias", {"__init__": LSTMBias(2.0).dumps()}), a)
    >>> a.asnumpy()
    array([0., 0., 2., 2., 0., 0., 0., 0.], dtype=float32)
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = 0.0
        hidden = arr.shape[0] // 4
        arr[hidden : 2 * hidden] = self.forget_bias
