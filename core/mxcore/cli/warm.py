"""``mxcore warm``: fill the cache of compiled code, while an image is built, so that no container compiles."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .arguments import add_shapes

if TYPE_CHECKING:
    import argparse

    from ..context import Context

__all__ = ["add_arguments", "main"]

_EVERYDAY = "the kernels of everyday use"


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


def main(args: argparse.Namespace) -> int:
    """Run once what shall be compiled."""
    os.environ["MXCORE_COMPILE"] = "wait"
    from .. import context

    ctx = context.cpu()
    start = time.perf_counter()
    if args.model is None:
        _everyday(ctx)
    elif Path(_graph(args.model)).is_file() or args.model.endswith(".json"):
        _file(_graph(args.model), dict(args.shape), args.train, ctx)
    else:
        shapes = dict(args.shape)
        _zoo(args.model, next(iter(shapes.values()), (1, 3, 224, 224)), args.train, ctx)
    print(f"{args.model or _EVERYDAY}: ready after {time.perf_counter() - start:.1f} s")
    return 0


def _graph(model: str) -> str:
    return model if model.endswith(".json") else f"{model}-symbol.json"


def _zoo(name: str, shape: tuple[int, ...], train: bool, ctx: Context) -> None:
    from .. import gluon

    net = gluon.model_zoo.vision.get_model(name)
    net.initialize(ctx=ctx)
    net.hybridize()
    _run(net, shape, train, ctx)


def _run(
    net: Any,
    shape: tuple[int, ...],
    train: bool,
    ctx: Context,
    *optimizers: tuple[str, dict[str, Any]],
    hybrid: bool = True,
) -> None:
    """Inference, and two training steps with each optimizer: what stands after the first runs in the second."""
    from .. import autograd, gluon
    from ..ndarray import ones, zeros

    data, label = ones(shape, ctx=ctx), zeros((shape[0],), ctx=ctx)
    net(data).wait_to_read()
    if not train:
        return
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize(hybrid)
    for optimizer, options in optimizers or (("sgd", {"momentum": 0.9, "wd": 1e-4}),):
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.0, **options})
        for _ in range(2):
            with autograd.record():
                found = loss(net(data), label)
            found.backward()
            trainer.step(shape[0])
    for p in net.collect_params().values():
        p.data(ctx).wait_to_read()


def _file(path: str, shapes: dict[str | None, tuple[int, ...]], train: bool, ctx: Context) -> None:
    from .. import symbol as sym
    from .summary import named_shapes

    graph = sym.load(path)
    executor = graph.simple_bind(ctx, grad_req="write" if train else "null", **named_shapes(graph, shapes))
    for out in executor.forward(is_train=train):
        out.wait_to_read()
    if train:
        executor.backward([out.ones_like() for out in executor.outputs])
        for grad in executor.grad_arrays:
            if grad is not None:
                grad.wait_to_read()


def _everyday(ctx: Context) -> None:
    """Small networks of each usual kind of layer, one of Module's, the usual optimizers, losses and orderings."""
    _images(ctx)
    _module(ctx)
    _sentences(ctx)
    _arrays(ctx)


def _images(ctx: Context) -> None:
    from ..gluon import nn

    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D())
    net.add(nn.Conv2D(8, 3, padding=1, groups=8), nn.Activation("tanh"), nn.AvgPool2D())
    net.add(nn.Conv2D(16, 1), nn.Activation("sigmoid"), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(16), nn.LayerNorm(), nn.LeakyReLU(0.1), nn.Dropout(0.5), nn.Dense(10))
    net.initialize(ctx=ctx)
    optimizers: tuple[tuple[str, dict[str, Any]], ...] = (
        ("sgd", {"momentum": 0.9, "wd": 1e-4}),
        ("sgd", {}),
        ("adam", {}),
        ("rmsprop", {}),
    )
    for hybrid in (False, True):
        net.hybridize(hybrid)
        _run(net, (64, 3, 32, 32), True, ctx, *optimizers, hybrid=hybrid)
    for shape in ((1, 16, 16, 32), (9, 64, 64, 32)):  # of few places, and of many
        net = nn.HybridSequential()
        net.add(nn.Conv2D(32, 3, padding=1, in_channels=32, layout="NHWC"), nn.GlobalAvgPool2D(layout="NHWC"))
        net.add(nn.Flatten())
        net.initialize(ctx=ctx)
        net.hybridize()
        _run(net, shape, True, ctx)


def _module(ctx: Context) -> None:
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
    data = mx_io.NDArrayIter(ones((128, 1, 28, 28)), zeros((128,)), 64)
    mod.fit(
        data,
        eval_data=data,
        num_epoch=1,
        initializer=initializer.Xavier(),
        optimizer_params={"learning_rate": 0.1, "momentum": 0.9},
    )


def _sentences(ctx: Context) -> None:
    from .. import autograd, gluon
    from ..gluon import nn, rnn
    from ..ndarray import zeros

    words = zeros((5, 4), ctx=ctx)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    for layer in (rnn.LSTM(8, 2), rnn.GRU(8)):
        net = nn.HybridSequential()
        net.add(nn.Embedding(10, 8), layer, nn.Dense(10, flatten=False))
        net.initialize(ctx=ctx)
        net.hybridize()
        with autograd.record():
            found = loss(net(words), words)
        found.backward()
        gluon.utils.clip_global_norm([p.grad(ctx) for p in net.collect_params().values()], 1.0)


def _arrays(ctx: Context) -> None:
    from .. import autograd, gluon
    from .. import ndarray as nd

    x = nd.random.normal(shape=(20, 40), ctx=ctx)
    x.attach_grad()
    losses = gluon.loss
    for loss in (losses.L1Loss(), losses.L2Loss(), losses.HuberLoss(), losses.SigmoidBCELoss()):
        with autograd.record():
            found = loss(x, x > 0)
        found.backward()
    results = x.sort(), x.argsort(), x.topk(k=2, ret_typ="both")[0], x.argmax(axis=1), x.softmax(), x.norm()
    for found in (*results, nd.take(x, x[0].abs() * 0)):
        found.wait_to_read()
