"""A worker that trains in every way that users train: ``training.py FILE`` writes the parameters that come out.

Alone it takes whole batches, as one of two workers its half of each: the numbers must be the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mxcore as mx
from mxcore import autograd, gluon
from mxcore.contrib import amp

STEPS, BATCH, FEATURES = 4, 16, 6

#: Way of training -> function of the worker's rank and how many there are, which returns parameters.
WAYS: dict[str, Callable[[int, int], Any]] = {}


def way(function: Callable[[int, int], Any]) -> Callable[[int, int], Any]:
    WAYS[function.__name__] = function
    return function


def batches(rank: int, workers: int) -> tuple[Any, Any]:
    """This worker's part of each batch, one behind the other."""
    x = np.random.default_rng(0).normal(size=(STEPS, BATCH, FEATURES)).astype("f")
    y = (x[..., 0] > x[..., 1]).astype("f")
    mine = slice(rank * BATCH // workers, (rank + 1) * BATCH // workers)
    return x[:, mine], y[:, mine]


def symbol() -> Any:
    data = mx.sym.var("data")
    hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=8, name="one"), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=2, name="two"), name="softmax")


def iterator(rank: int, workers: int) -> Any:
    x, y = batches(rank, workers)
    return mx.io.NDArrayIter(x.reshape(-1, FEATURES), y.reshape(-1), x.shape[1])


def module(rank: int, workers: int, kvstore: str = "dist_sync", **more: Any) -> Any:
    mod = mx.mod.Module(symbol(), **more)
    settings = {"learning_rate": 0.5, "momentum": 0.9}
    init = mx.init.Xavier()
    mod.fit(iterator(rank, workers), num_epoch=2, kvstore=kvstore, optimizer_params=settings, initializer=init)
    return mod.get_params()[0]


@way
def module_fit(rank: int, workers: int) -> Any:
    return module(rank, workers)


@way
def module_fit_over_contexts(rank: int, workers: int) -> Any:
    return module(rank, workers, context=[mx.cpu(0), mx.cpu(1)])


@way
def module_fit_with_adam_over_a_device_store(rank: int, workers: int) -> Any:
    mod = mx.mod.Module(symbol())
    init = mx.init.Xavier()
    mod.fit(iterator(rank, workers), num_epoch=2, kvstore="dist_device_sync", optimizer="adam", initializer=init)
    return mod.get_params()[0]


@way
def feed_forward(rank: int, workers: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mx.model.FeedForward(
            symbol(), num_epoch=2, learning_rate=0.5, momentum=0.9, initializer=mx.init.Xavier()
        )
        model.fit(iterator(rank, workers), kvstore="dist_sync")
    return model.arg_params


def network(**more: Any) -> Any:
    net = gluon.nn.Sequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(8, "tanh", in_units=FEATURES), gluon.nn.Dense(2, in_units=8))
    net.initialize(mx.init.Xavier(), **more)
    return net


def parameters(net: Any) -> Any:
    return {name: p.data(p.list_ctx()[0]) for name, p in net.collect_params().items()}


loss_of = gluon.loss.SoftmaxCrossEntropyLoss()


def trainer(net: Any, kvstore: str = "dist_sync", **more: Any) -> Any:
    settings = {"learning_rate": 0.5, "momentum": 0.9}
    return gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=kvstore, **more)


def gluon_steps(rank: int, workers: int, update_on_kvstore: bool, contexts: Any = (mx.cpu(0),)) -> Any:
    net = network(ctx=list(contexts))
    step = trainer(net, update_on_kvstore=update_on_kvstore)
    for x, y in zip(*batches(rank, workers)):
        data, label = (gluon.utils.split_and_load(mx.nd.array(a), list(contexts)) for a in (x, y))
        with autograd.record():
            losses = [loss_of(net(a), b) for a, b in zip(data, label)]
        autograd.backward(losses)
        step.step(BATCH)
    return parameters(net)


@way
def gluon_updated_by_the_store(rank: int, workers: int) -> Any:
    return gluon_steps(rank, workers, True)


@way
def gluon_updated_by_workers(rank: int, workers: int) -> Any:
    return gluon_steps(rank, workers, False)


@way
def gluon_over_contexts(rank: int, workers: int) -> Any:
    return gluon_steps(rank, workers, True, (mx.cpu(0), mx.cpu(1)))


@way
def gluon_with_gradients_added_up(rank: int, workers: int) -> Any:
    net = network()
    for p in net.collect_params().values():
        p.grad_req = "add"
    step = trainer(net)
    for i, (x, y) in enumerate(zip(*batches(rank, workers))):
        with autograd.record():
            loss = loss_of(net(mx.nd.array(x)), mx.nd.array(y))
        loss.backward()
        if i % 2:
            step.step(2 * BATCH)
            for p in net.collect_params().values():
                p.zero_grad()
    return parameters(net)


@way
def sparse_gradients(rank: int, workers: int) -> Any:
    net = gluon.nn.Sequential(prefix="sparse_")
    with net.name_scope():
        net.add(gluon.nn.Embedding(20, 4, sparse_grad=True), gluon.nn.Dense(2, in_units=4 * FEATURES))
    net.initialize(mx.init.Xavier())
    step = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="dist_sync")
    for x, y in zip(*batches(rank, workers)):
        with autograd.record():
            loss = loss_of(net(mx.nd.array(np.floor(np.abs(x) * 7) % 20)), mx.nd.array(y))
        loss.backward()
        step.step(BATCH)
    return parameters(net)


@way
def row_sparse_weights(rank: int, workers: int) -> Any:
    """Weights that live on the servers, of which each step fetches the rows that it needs."""
    weight = gluon.Parameter("rows", shape=(20, 3), stype="row_sparse", grad_stype="row_sparse")
    weight.initialize(mx.init.Uniform(1))
    # Servers get the optimizer with the first rows that are fetched, before `step` could tell the batch size.
    settings = {"learning_rate": 0.5, "rescale_grad": 1 / BATCH}
    step = gluon.Trainer([weight], "sgd", settings, kvstore="dist_sync")
    for x, _ in zip(*batches(rank, workers)):
        ids = mx.nd.array(np.unique(np.floor(np.abs(x[:, 0]) * 7) % 20))
        with autograd.record():
            rows = weight.row_sparse_data(ids)
            taken = mx.nd.sparse.Embedding(
                mx.nd.array(np.floor(np.abs(x[:, 0]) * 7) % 20), rows, input_dim=20, output_dim=3, sparse_grad=True
            )
            loss = (taken * taken).sum()
        loss.backward()
        step.step(1)
    return {"rows": weight.row_sparse_data(mx.nd.arange(20)).tostype("default")}


@way
def compressed(rank: int, workers: int) -> Any:
    """Gradients in half the bytes, which powers of two survive."""
    net = gluon.nn.Dense(1, in_units=FEATURES, use_bias=False, prefix="compressed_")
    net.initialize(mx.init.One())
    step = trainer(net, compression_params={"type": "fp16"} if workers > 1 else None)
    for x, _ in zip(*batches(rank, workers)):
        with autograd.record():
            loss = net(mx.nd.array(np.sign(x))).sum()
        loss.backward()
        step.step(BATCH)
    return parameters(net)


@way
def asynchronous(rank: int, workers: int) -> Any:
    """Gradients that do not depend on the weights: the sum is the same, in whatever order they come."""
    net = gluon.nn.Dense(1, in_units=FEATURES, use_bias=False, prefix="async_")
    net.initialize(mx.init.Xavier())
    step = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="dist_async")
    for x, _ in zip(*batches(rank, workers)):
        with autograd.record():
            loss = net(mx.nd.array(x)).sum()
        loss.backward()
        step.step(BATCH)
    mx.nd.waitall()
    step._kvstore.barrier()
    out = mx.nd.empty(net.weight.shape)
    step._kvstore.pull(0, out=out)
    return {"weight": out}


@way
def mixed_precision(rank: int, workers: int) -> Any:
    """With one step whose gradients overflow on the first worker only: all of them pass over it."""
    amp.init()
    net = network()
    step = trainer(net, update_on_kvstore=False)
    amp.init_trainer(step)
    share = 2.0**-10  # of the loss, whose gradients do not overflow otherwise
    for i, (x, y) in enumerate(zip(*batches(rank, workers))):
        with autograd.record():
            loss = loss_of(net(mx.nd.array(x)), mx.nd.array(y)) * share
            if i == 1 and rank == 0:
                loss = loss * np.inf
            with amp.scale_loss(loss, step) as scaled:
                pass
        scaled.backward()
        step.step(BATCH * share)
    scale = step._amp_loss_scaler.loss_scale
    return {**parameters(net), "scale": mx.nd.array([scale])}


def main() -> None:
    job = mx.kv.create("dist_async")
    rank, workers = job.rank, job.num_workers
    found = {}
    for name, train in WAYS.items():
        mx.random.seed(7)
        np.random.seed(7)
        for key, value in train(rank, workers).items():
            found[f"{name}/{key}"] = value.asnumpy()
    np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
