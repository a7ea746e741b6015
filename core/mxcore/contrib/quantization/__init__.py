"""Quantisation to eight bits, as ``mxnet.contrib.quantization``.

>>> import mxcore as mx
>>> net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
>>> args = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
>>> qnet, qargs, aux = mx.contrib.quantization.quantize_model(net, args, {}, calib_mode="none")
>>> sorted(qargs)[3:]
['fc_weight_quantize', 'fc_weight_quantize_max', 'fc_weight_quantize_min']

See docs/quantization.md.
"""

from __future__ import annotations

from ..._reexports import reexports
from .blocks import quantize_net, quantize_net_v2
from .calibration import combine_histogram
from .models import calib_graph, quantize_graph, quantize_model, quantize_model_mkldnn

__all__ = [
    "calib_graph",
    "combine_histogram",
    "quantize_graph",
    "quantize_model",
    "quantize_model_mkldnn",
    "quantize_net",
    "quantize_net_v2",
]

__getattr__ = reexports(__name__)
