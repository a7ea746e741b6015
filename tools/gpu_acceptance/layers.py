"""How fast layers besides convolutions are, forward and backward, against PyTorch in the same process, in turn.

PyTorch's recurrent layers and normalization of batches are cuDNN's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxcore as mx

from . import Report
from .plugin import gpu, torch
from .speed import compared

__all__ = ["attention", "norms", "recurrent"]

#: Of a layer: name, mode, steps, batch, inputs, units, layers, whether it goes both ways.
NETWORKS = [
    ("language model", "lstm", 35, 32, 650, 650, 2, False),
    ("text in pictures", "lstm", 26, 64, 512, 256, 2, True),
    ("series", "gru", 96, 64, 64, 256, 2, False),
    ("one at a time", "lstm", 50, 1, 256, 256, 1, False),
]
DTYPES = "float32", "float16"


def _ours(layer: mx.gluon.HybridBlock, shape: tuple[int, ...], dtype: str, recorded: bool = True) -> Callable[[], None]:
    """Forward and backward of a layer here."""
    layer.initialize(ctx=gpu())
    layer.cast(dtype)
    if recorded:
        layer.hybridize(static_alloc=True, static_shape=True)
    x = mx.nd.random.uniform(shape=shape, ctx=gpu()).astype(dtype)
    x.attach_grad()
    head = layer(x).ones_like()

    def run() -> None:
        with mx.autograd.record():
            y = layer(x)
        y.backward(head)

    return run


def _theirs(layer: Callable[..., Any], *inputs: Any) -> Callable[[], None]:
    """Forward and backward of a layer there."""
    first = layer(*inputs)
    head = first.new_ones(first.shape)
    return lambda: layer(*inputs).backward(head)


def _given(shape: tuple[int, ...], dtype: str) -> Any:
    """PyTorch's input."""
    their = torch()
    return their.rand(*shape, device="cuda", dtype=getattr(their, dtype), requires_grad=True)


def norms(report: Report) -> None:
    """Normalization of batches and of layers, and softmax; large enough that the GPU takes longer than the host."""
    nn, their = mx.gluon.nn, torch()
    batches = [(2, 3, 4, 4)] if report.emulate else [(64, 64, 112, 112), (256, 512, 28, 28), (512, 2048, 7, 7)]
    rows = [(8, 16)] if report.emulate else [(65536, 768), (16384, 4096), (4096, 32000)]
    for dtype in DTYPES:
        for shape in batches:
            theirs = None if their is None else their.nn.BatchNorm2d(shape[1]).cuda()
            _compare(report, "BatchNorm", nn.BatchNorm(in_channels=shape[1]), shape, dtype, theirs)
        for shape in rows:
            theirs = None if their is None else their.nn.LayerNorm(shape[1]).cuda().to(getattr(their, dtype))
            _compare(report, "LayerNorm", nn.LayerNorm(in_channels=shape[1]), shape, dtype, theirs)
            theirs = None if their is None else their.nn.Softmax(-1)
            _compare(report, "softmax", nn.HybridLambda("softmax"), shape, dtype, theirs)


def _compare(report: Report, what: str, layer: Any, shape: tuple[int, ...], dtype: str, theirs: Any) -> None:
    """One line."""
    run = None if theirs is None else _theirs(theirs, _given(shape, dtype))
    compared(report, f"{what} {shape}, {dtype}", _ours(layer, shape, dtype, recorded=False), run, 0.95)


def recurrent(report: Report) -> None:
    """Recurrent layers, eager and as recorded programs."""
    their = torch()
    for dtype in DTYPES:
        for name, mode, steps, batch, inputs, units, layers, both in NETWORKS:
            if report.emulate:
                steps, batch, inputs, units = 2, 2, 3, 4
            kind = {"lstm": mx.gluon.rnn.LSTM, "gru": mx.gluon.rnn.GRU}[mode]
            theirs = None
            if their is not None:
                like = {"lstm": their.nn.LSTM, "gru": their.nn.GRU}[mode]
                made = like(inputs, units, layers, bidirectional=both).cuda().to(getattr(their, dtype))
                made.flatten_parameters()
                theirs = _theirs(lambda a, made=made: made(a)[0], _given((steps, batch, inputs), dtype))
            sizes = f"{layers} x {mode}{' both ways' if both else ''}, {steps} x {batch} x {inputs} to {units}, {dtype}"
            for recorded in (False, True):
                net = kind(units, layers, bidirectional=both, input_size=inputs)
                what = f"{name}, hybridised" if recorded else f"{name}: {sizes}"
                compared(report, what, _ours(net, (steps, batch, inputs), dtype, recorded), theirs, 0.5)


def attention(report: Report) -> None:
    """Attention of several heads to a sequence of its own, as GluonNLP writes it, beside PyTorch's in one kernel."""
    their = torch()
    length, batch, heads, width = (4, 2, 2, 8) if report.emulate else (512, 16, 12, 64)

    class Attention(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            scores = F.contrib.interleaved_matmul_selfatt_qk(x, heads=heads)
            return F.contrib.interleaved_matmul_selfatt_valatt(x, F.softmax(scores), heads=heads)

    for dtype in DTYPES:
        ours = _ours(Attention(), (length, batch, heads * width * 3), dtype)
        theirs = None
        if their is not None:
            given = _given((3, batch, heads, length, width), dtype)
            theirs = _theirs(lambda a: their.nn.functional.scaled_dot_product_attention(*a), given)
        compared(report, f"attention {length} x {batch}, {heads} heads, {dtype}", ours, theirs, 0.5)
