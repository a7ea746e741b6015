"""A worker that trains in every way that users train: ``training.py FILE`` writes the parameters that come out.

Alone it takes whole batches, with a local store, as one of two workers its half of each: the numbers must be the same.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import mxcore as mx
from mxcore import autograd, gluon
from mxcore.contrib import amp

STEPS, BATCH, FEATURES = 4, 16, 6

#: A function of the worker's rank, how many there are, and the type of store, which returns parameters.
Way = Callable[[int, int, str], Any]
#: Name -> way of training, and the type of store by which several workers do so.
WAYS: dict[str, tuple[Way, str]] = {}


def way(*types: str) -> Callable[[Way], Way]:
    def declare(function: Way) -> Way:
        for type in types:
            WAYS[f"{function.__name__} by {type}"] = function, type
        return function

    return declare


#: Where workers update, they may add up with servers or without.
BOTH = ("dist_sync", "allreduce")


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


def fit(mod: Any, rank: int, workers: int, kvstore: str, **more: Any) -> Any:
    settings = {"optimizer_params": {"learning_rate": 0.5, "momentum": 0.9}, **more}
    mod.fit(iterator(rank, workers), num_epoch=2, kvstore=kvstore, initializer=mx.init.Xavier(), **settings)
    return mod.get_params()[0]


@way(*BOTH)
def module_fit(rank: int, workers: int, kvstore: str) -> Any:
    return fit(mx.mod.Module(symbol()), rank, workers, kvstore)


@way(*BOTH)
def module_fit_over_contexts(rank: int, workers: int, kvstore: str) -> Any:
    return fit(mx.mod.Module(symbol(), context=[mx.cpu(0), mx.cpu(1)]), rank, workers, kvstore)


@way("dist_device_sync")
def module_fit_with_adam(rank: int, workers: int, kvstore: str) -> Any:
    return fit(mx.mod.Module(symbol()), rank, workers, kvstore, optimizer="adam", optimizer_params={})


@way(*BOTH)
def bucketing_module(rank: int, workers: int, kvstore: str) -> Any:
    """Batches of two lengths in turns, whose symbols share their parameters."""

    def of_length(key: int) -> Any:
        shared = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="one", flatten=False)
        mean = mx.sym.mean(mx.sym.Activation(shared, act_type="tanh"), axis=1)
        out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mean, num_hidden=2, name="two"), name="softmax")
        return out, ("data",), ("softmax_label",)

    mod = mx.mod.BucketingModule(of_length, default_bucket_key=3)
    size = BATCH // workers
    for step, (x, y) in enumerate(zip(*batches(rank, workers))):
        key = 3 if step % 2 == 0 else 2
        data = mx.nd.array(x.reshape(size, 3, 2)[:, :key])
        provide = [("data", data.shape)], [("softmax_label", (size,))]
        if step == 0:
            mod.bind(*provide)
            mod.init_params(mx.init.Xavier())
            mod.init_optimizer(kvstore, "sgd", {"learning_rate": 0.5, "momentum": 0.9})
        batch = mx.io.DataBatch([data], [mx.nd.array(y)], 0, None, key, *provide)
        mod.forward_backward(batch)
        mod.update()
    return mod.get_params()[0]


@way(*BOTH)
def feed_forward(rank: int, workers: int, kvstore: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mx.model.FeedForward(
            symbol(), num_epoch=2, learning_rate=0.5, momentum=0.9, initializer=mx.init.Xavier()
        )
        model.fit(iterator(rank, workers), kvstore=kvstore)
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


def trainer(net: Any, kvstore: str, **more: Any) -> Any:
    settings = {"learning_rate": 0.5, "momentum": 0.9}
    return gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=kvstore, **more)


def gluon_steps(rank: int, workers: int, kvstore: str, update_on_kvstore: bool, contexts: Any = (mx.cpu(0),)) -> Any:
    net = network(ctx=list(contexts))
    step = trainer(net, kvstore, update_on_kvstore=update_on_kvstore)
    for x, y in zip(*batches(rank, workers)):
        data, label = (gluon.utils.split_and_load(mx.nd.array(a), list(contexts)) for a in (x, y))
        with autograd.record():
            losses = [loss_of(net(a), b) for a, b in zip(data, label)]
        autograd.backward(losses)
        step.step(BATCH)
    return parameters(net)


@way("dist_sync")
def gluon_updated_by_the_store_at_rates_that_fall(rank: int, workers: int, kvstore: str) -> Any:
    net = network()
    step = trainer(net, kvstore, update_on_kvstore=True)
    for i, (x, y) in enumerate(zip(*batches(rank, workers))):
        step.set_learning_rate(0.5 / (i + 1))
        with autograd.record():
            loss = loss_of(net(mx.nd.array(x)), mx.nd.array(y))
        loss.backward()
        step.step(BATCH)
    return parameters(net)


@way("dist_sync")
def gluon_updated_by_the_store(rank: int, workers: int, kvstore: str) -> Any:
    return gluon_steps(rank, workers, kvstore, True)


@way(*BOTH)
def gluon_updated_by_workers(rank: int, workers: int, kvstore: str) -> Any:
    return gluon_steps(rank, workers, kvstore, False)


@way("dist_sync")
def gluon_over_contexts_updated_by_the_store(rank: int, workers: int, kvstore: str) -> Any:
    return gluon_steps(rank, workers, kvstore, True, (mx.cpu(0), mx.cpu(1)))


@way(*BOTH)
def gluon_over_contexts_updated_by_workers(rank: int, workers: int, kvstore: str) -> Any:
    return gluon_steps(rank, workers, kvstore, False, (mx.cpu(0), mx.cpu(1)))


@way(*BOTH)
def gluon_with_gradients_added_up(rank: int, workers: int, kvstore: str) -> Any:
    net = network()
    for p in net.collect_params().values():
        p.grad_req = "add"
    step = trainer(net, kvstore)
    for i, (x, y) in enumerate(zip(*batches(rank, workers))):
        with autograd.record():
            loss = loss_of(net(mx.nd.array(x)), mx.nd.array(y))
        loss.backward()
        if i % 2:
            step.step(2 * BATCH)
            for p in net.collect_params().values():
                p.zero_grad()
    return parameters(net)


@way(*BOTH)
def estimator_fit(rank: int, workers: int, kvstore: str) -> Any:
    net = network()
    x, y = batches(rank, workers)
    dataset = gluon.data.ArrayDataset(x.reshape(-1, FEATURES), y.reshape(-1))
    # Its steps divide by the worker's batch only.
    settings = {"learning_rate": 0.5, "momentum": 0.9, "rescale_grad": 1 / workers}
    step = gluon.Trainer(net.collect_params(), "sgd", settings, kvstore=kvstore)
    estimator = gluon.contrib.estimator.Estimator(net, loss_of, trainer=step, context=mx.cpu())
    logging.disable()
    estimator.fit(gluon.data.DataLoader(dataset, BATCH // workers), epochs=2)
    logging.disable(logging.NOTSET)
    return parameters(net)


@way(*BOTH)
def sparse_gradients(rank: int, workers: int, kvstore: str) -> Any:
    net = gluon.nn.Sequential(prefix="sparse_")
    with net.name_scope():
        net.add(gluon.nn.Embedding(20, 4, sparse_grad=True), gluon.nn.Dense(2, in_units=4 * FEATURES))
    net.initialize(mx.init.Xavier())
    step = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=kvstore)
    for x, y in zip(*batches(rank, workers)):
        with autograd.record():
            loss = loss_of(net(mx.nd.array(np.floor(np.abs(x) * 7) % 20)), mx.nd.array(y))
        loss.backward()
        step.step(BATCH)
    return parameters(net)


@way("dist_sync")
def row_sparse_weights(rank: int, workers: int, kvstore: str) -> Any:
    """Weights that live on the servers, of which each step fetches the rows that it needs."""
    weight = gluon.Parameter("rows", shape=(20, 3), stype="row_sparse", grad_stype="row_sparse")
    weight.initialize(mx.init.Uniform(1))
    # Servers get the optimizer with the first rows that are fetched, before `step` could tell the batch size.
    settings = {"learning_rate": 0.5, "rescale_grad": 1 / BATCH}
    step = gluon.Trainer([weight], "sgd", settings, kvstore=kvstore)
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


def linear_steps(net: Any, step: Any, rank: int, workers: int, of: Callable[[Any], Any] = np.asarray) -> None:
    """Steps whose gradients are sums of data, and do not depend on the weights."""
    for x, _ in zip(*batches(rank, workers)):
        with autograd.record():
            loss = net(mx.nd.array(of(x))).sum()
        loss.backward()
        step.step(BATCH)


@way("dist_sync")
def compressed_to_half_precision(rank: int, workers: int, kvstore: str) -> Any:
    """Gradients in half the bytes, which whole numbers survive."""
    net = gluon.nn.Dense(1, in_units=FEATURES, use_bias=False, prefix="compressed_")
    net.initialize(mx.init.One())
    step = trainer(net, kvstore, compression_params={"type": "fp16"} if workers > 1 else None)
    linear_steps(net, step, rank, workers, np.sign)
    return parameters(net)


@way("dist_sync")
def compressed_to_two_bits(rank: int, workers: int, kvstore: str) -> Any:
    """Gradients that are all the threshold, each of which two bits hold."""
    net = gluon.nn.Dense(1, in_units=FEATURES, use_bias=False, prefix="two_bits_")
    net.initialize(mx.init.One())
    params = {"type": "2bit", "threshold": BATCH / workers}
    step = trainer(net, kvstore, compression_params=params if workers > 1 else None)
    linear_steps(net, step, rank, workers, np.ones_like)
    return parameters(net)


def brought_together(store: Any, key: Any, shape: Any) -> Any:
    """A value when all workers have done all that they do."""
    mx.nd.waitall()
    out = mx.nd.zeros(shape)
    store.barrier()
    store.pull(key, out=out)
    return {"weight": out}


@way("dist_async")
def asynchronous_module(rank: int, workers: int, kvstore: str) -> Any:
    """Gradients that do not depend on the weights: the sum is the same, in whatever order they come."""
    out = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, no_bias=True, name="one")
    mod = mx.mod.Module(mx.sym.MakeLoss(out), label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    x, _ = batches(rank, workers)
    data = mx.io.NDArrayIter(x.reshape(-1, FEATURES), None, x.shape[1])
    settings = {"learning_rate": 0.5, "rescale_grad": 1 / BATCH}
    store = mx.kv.create(kvstore)
    mod.fit(data, num_epoch=2, kvstore=store, optimizer_params=settings, eval_metric=mx.metric.Loss())
    return brought_together(store, "one_weight", (1, FEATURES))


@way("dist_async")
def asynchronous_trainer(rank: int, workers: int, kvstore: str) -> Any:
    """The same by Gluon."""
    net = gluon.nn.Dense(1, in_units=FEATURES, use_bias=False, prefix="async_")
    net.initialize(mx.init.Xavier())
    store = mx.kv.create(kvstore)
    step = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore=store, update_on_kvstore=True)
    linear_steps(net, step, rank, workers)
    return brought_together(store, 0, net.weight.shape)


@way(*BOTH)
def mixed_precision(rank: int, workers: int, kvstore: str) -> Any:
    """With one step whose gradients overflow on the first worker only: all of them pass over it."""
    amp.init()
    net = network()
    step = trainer(net, kvstore, update_on_kvstore=False)
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
    for name, (train, kvstore) in WAYS.items():
        mx.random.seed(7)
        np.random.seed(7)
        for key, value in train(rank, workers, kvstore if workers > 1 else "local").items():
            found[f"{name}/{key}"] = value.asnumpy()
    np.savez(sys.argv[1], **found)


if __name__ == "__main__":
    main()
