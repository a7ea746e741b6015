"""``mxcore warm``: fill the cache of compiled code, while an image is built, so that no container compiles."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import error
from .arguments import add_shapes

if TYPE_CHECKING:
    import argparse

    from ..context import Context

__all__ = ["add_arguments", "main"]

_EVERYDAY = "the kernels of everyday use"
#: What networks may compute in, and those of them whose weights optimizers keep a second time, in float32.
DTYPES, _HALVES = ("float32", "float16", "float64", "bfloat16"), ("float16", "bfloat16")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "model",
        metavar="MODEL",
        nargs="?",
        help="a network of the model zoo, such as resnet50_v1, or a graph file, path or prefix, such as "
        f"resnet-symbol.json; without one {_EVERYDAY}",
    )
    add_shapes(parser, " (what networks of the zoo get unless told); may be given several times")
    add("--train", action="store_true", help="what training needs, too")
    add("--dtype", choices=DTYPES, help="what data and parameters are of (what a graph file says, else float32)")


def main(args: argparse.Namespace) -> int:
    """Run once what shall be compiled.

    Raises
    ------
    MXNetError
        (also OSError) if some of it could not be kept.
    """
    os.environ["MXCORE_COMPILE"] = "wait"
    from .. import context
    from ..codecache import CodeCache

    ctx, dtype = context.cpu(), args.dtype or DTYPES[0]
    start = time.perf_counter()
    kind = f", {dtype}"
    if args.model is None:
        _everyday(ctx, dtype)
    elif Path(_graph(args.model)).is_file() or args.model.endswith(".json"):
        _file(_graph(args.model), dict(args.shape), args.train, ctx, args.dtype)
        kind = f", {args.dtype}" if args.dtype else ""
    else:
        shapes = dict(args.shape)
        _zoo(args.model, next(iter(shapes.values()), (1, 3, 224, 224)), args.train, ctx, dtype)
    if lost := CodeCache.unkept:
        entry, why = next(iter(lost.items()))
        raise error(OSError, f"{len(lost)} pieces of compiled code could not be kept in {entry.parent}: {why}")
    print(f"{args.model or _EVERYDAY}{kind}: ready after {time.perf_counter() - start:.1f} s")
    return 0


def _graph(model: str) -> str:
    return model if model.endswith(".json") else f"{model}-symbol.json"


def _zoo(name: str, shape: tuple[int, ...], train: bool, ctx: Context, dtype: str) -> None:
    from .. import gluon

    _run(_ready(gluon.model_zoo.vision.get_model(name), ctx, dtype), shape, train, ctx, dtype)


def _ready(net: Any, ctx: Context, dtype: str) -> Any:
    """A hybridised network with parameters of a dtype."""
    net.initialize(ctx=ctx)
    net.cast(dtype)
    net.hybridize()
    return net


def _run(
    net: Any,
    shape: tuple[int, ...],
    train: bool,
    ctx: Context,
    dtype: str,
    *optimizers: tuple[str, dict[str, Any]],
    hybrid: bool = True,
) -> None:
    """Inference, and two training steps with each optimizer: what stands after the first runs in the second."""
    from .. import autograd, gluon
    from ..ndarray import ones, zeros

    data, label = ones(shape, ctx=ctx, dtype=dtype), zeros((shape[0],), ctx=ctx)
    masters = {"multi_precision": True} if dtype in _HALVES else {}
    net(data).wait_to_read()
    if not train:
        return
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize(hybrid)
    for optimizer, options in optimizers or (("sgd", {"momentum": 0.9, "wd": 1e-4}),):
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.0, **masters, **options})
        for _ in range(2):
            with autograd.record():
                found = loss(net(data), label)
            found.backward()
            trainer.step(shape[0])
    for p in net.collect_params().values():
        p.data(ctx).wait_to_read()


def _file(path: str, shapes: dict[str | None, tuple[int, ...]], train: bool, ctx: Context, dtype: str | None) -> None:
    from .. import symbol as sym
    from .._core.graph import Graph
    from .summary import named_shapes

    graph = sym.load(path)
    told = named_shapes(graph, shapes)
    if dtype is not None:  # the parameters' follow from that of the data
        for n in Graph(graph._heads).variables():
            n.attrs.pop("__dtype__", None)
    types = None if dtype is None else dict.fromkeys(told, dtype)
    executor = graph.simple_bind(ctx, grad_req="write" if train else "null", type_dict=types, **told)
    for out in executor.forward(is_train=train):
        out.wait_to_read()
    if train:
        executor.backward([out.ones_like() for out in executor.outputs])
        for grad in executor.grad_arrays:
            if grad is not None:
                grad.wait_to_read()


def _everyday(ctx: Context, dtype: str) -> None:
    """Small networks of each usual kind of layer, one of Module's, the usual optimizers, losses and orderings."""
    _images(ctx, dtype)
    _module(ctx, dtype)
    _sentences(ctx, dtype)
    _arrays(ctx, dtype)


def _images(ctx: Context, dtype: str) -> None:
    from ..gluon import nn

    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Conv2D(8, 3, padding=1, groups=8), nn.Activation("tanh"), nn.AvgPool2D())
    net.add(nn.Conv2D(16, 1), nn.Activation("sigmoid"), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(16), nn.LayerNorm(), nn.LeakyReLU(0.1), nn.Dropout(0.5), nn.Dense(10))
    _ready(net, ctx, dtype)
    optimizers: tuple[tuple[str, dict[str, Any]], ...] = (
        ("sgd", {"momentum": 0.9, "wd": 1e-4}),
        ("sgd", {}),
        ("adam", {}),
        ("rmsprop", {}),
    )
    for hybrid in (False, True):
        net.hybridize(hybrid)
        _run(net, (64, 3, 32, 32), True, ctx, dtype, *optimizers, hybrid=hybrid)
        _run(net, (1, 3, 32, 32), True, ctx, dtype, hybrid=hybrid)  # products with one row
    for shape in ((1, 16, 16, 32), (9, 64, 64, 32)):  # of few places, and of many
        net = nn.HybridSequential()
        net.add(nn.Conv2D(32, 3, padding=1, in_channels=32, layout="NHWC"), nn.GlobalAvgPool2D(layout="NHWC"))
        net.add(nn.Flatten())
        _run(_ready(net, ctx, dtype), shape, True, ctx, dtype)


def _module(ctx: Context, dtype: str) -> None:
    from .. import initializer, module, symbol
    from .. import io as mx_io
    from ..ndarray import ones, zeros

    body = symbol.Variable("data")
    for filters in (20, 50):
        body = symbol.Convolution(body, kernel=(5, 5), num_filter=filters)
        body = symbol.Pooling(symbol.Activation(body, act_type="tanh"), pool_type="max", kernel=(2, 2), stride=(2, 2))
    body = symbol.Activation(symbol.FullyConnected(symbol.Flatten(body), num_hidden=500), act_type="tanh")
    body = symbol.SoftmaxOutput(symbol.FullyConnected(body, num_hidden=10), name="softmax")
    mod = module.Module(body, context=ctx)
    data = mx_io.NDArrayIter(ones((128, 1, 28, 28), dtype=dtype), zeros((128,), dtype=dtype), 64)
    mod.fit(
        data,
        eval_data=data,
        num_epoch=1,
        initializer=initializer.Xavier(),
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9, "multi_precision": dtype in _HALVES},
    )


def _sentences(ctx: Context, dtype: str) -> None:
    from .. import autograd, gluon
    from ..gluon import nn, rnn
    from ..ndarray import zeros

    words = zeros((5, 4), ctx=ctx)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for layer in (rnn.LSTM(8, 2), rnn.GRU(8)):
        net = nn.HybridSequential()
        net.add(nn.Embedding(10, 8), layer, nn.Dense(10, flatten=False))
        _ready(net, ctx, dtype)
        with autograd.record():
            found = loss(net(words), words)
        found.backward()
        gluon.utils.clip_global_norm([p.grad(ctx) for p in net.collect_params().values()], 1.0)
    _attention(ctx, dtype)


def _attention(ctx: Context, dtype: str) -> None:
    """A block of a transformer, with both ways of writing attention, on one sentence and on several."""
    from ..gluon import HybridBlock, nn

    class Block(HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            with self.name_scope():
                self.norm, self.drop = nn.LayerNorm(), nn.Dropout(0.1)
                self.qkv, self.out = nn.Dense(96, flatten=False), nn.Dense(32, flatten=False)
                self.wide, self.narrow = nn.Dense(64, flatten=False), nn.Dense(32, flatten=False)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            qkv = self.qkv(self.norm(x))
            weights = self.drop(F.softmax(F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=4)))
            x = x + self.out(F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=4))
            y = x.swapaxes(0, 1)
            z = F.batch_dot(F.softmax(F.batch_dot(y, y, transpose_b=True) * 0.2), y)
            return x + self.drop(self.narrow(F.LeakyReLU(self.wide(z.swapaxes(0, 1)), act_type="gelu")))

    net = nn.HybridSequential()
    net.add(Block(), nn.Dense(10, flatten=False), nn.HybridLambda(lambda F, x: x.mean(axis=1)))
    _ready(net, ctx, dtype)
    for shape in ((24, 1, 32), (24, 6, 32)):
        _run(net, shape, True, ctx, dtype, ("adam", {}))


def _arrays(ctx: Context, dtype: str) -> None:
    from .. import autograd, gluon
    from .. import ndarray as nd

    x = nd.random.normal(shape=(20, 40), ctx=ctx).astype(dtype)
    x.attach_grad()
    losses = gluon.loss
    for loss in (losses.L1Loss(), losses.L2Loss(), losses.HuberLoss(), losses.SigmoidBCELoss()):
        with autograd.record():
            found = loss(x, x > 0)
        found.backward()
    results = x.sort(), x.argsort(), x.topk(k=2, ret_typ="both")[0], x.argmax(axis=1), x.softmax(), x.norm()
    wide = nd.ones((1024, 1024), ctx=ctx, dtype=dtype)  # as the last layer of a classifier of one picture
    one_row = nd.FullyConnected(wide[:1], wide, no_bias=True, num_hidden=1024)
    for found in (*results, one_row, nd.take(x, x[0].abs() * 0)):
        found.wait_to_read()
