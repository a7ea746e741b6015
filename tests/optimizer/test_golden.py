"""Ten steps of every optimizer, and its pickled states, against MXNet 1.9.1.

The file is made by `tests/golden/make_optimizer_golden.py`. MXNet rounds ``1 - beta`` to float32: hence 1e-4.
"""

import json
import pathlib

import numpy as np
import pytest

import mxcore as mx

with np.load(pathlib.Path(__file__).parents[1] / "golden" / "data" / "optimizers.npz") as _file:
    GOLDEN = dict(_file)
CASES = {key: (name, config) for key, name, config in json.loads(str(GOLDEN["cases"]))}
SHAPES = json.loads(str(GOLDEN["shapes"]))


def of_kind(kind):
    return [key for key in CASES if key.startswith(kind)]


def optimizer(key):
    name, config = CASES[key]
    config = dict(config)
    if "lr_scheduler" in config:
        kind, arguments = config["lr_scheduler"]
        config["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(**arguments)
    half = key.startswith("half")
    return mx.optimizer.create(name, param_idx2name=dict(enumerate(SHAPES)), multi_precision=half, **config)


def split(flat):
    sizes = np.cumsum([np.prod(s) for s in SHAPES.values()])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(flat, sizes), SHAPES.values())]


def check_steps(key, one_by_one, dtype, **tolerance):
    update = mx.optimizer.get_updater(optimizer(key))
    weights = [mx.nd.array(w, dtype=dtype) for w in split(GOLDEN["start"])]
    indices = list(range(len(weights)))
    for grad, expected in zip(GOLDEN["grads"], GOLDEN[key]):
        grads = [mx.nd.array(g, dtype=dtype) for g in split(grad)]
        if one_by_one:
            for i, g, w in zip(indices, grads, weights):
                update(i, g, w)
        else:
            update(indices, grads, weights)
        found = np.concatenate([w.asnumpy().ravel() for w in weights])
        np.testing.assert_allclose(found, expected, **tolerance)


@pytest.mark.parametrize("key", of_kind("dense"))
def test_steps_together(key):
    check_steps(key, False, "float32", rtol=1e-4, atol=2e-5)


# LARS's momentum follows the change of the learning rate from call to call, so the grouping shows.
@pytest.mark.parametrize("key", [k for k in of_kind("dense") if k not in ("dense_lars_4", "dense_lars_5")])
def test_steps_one_by_one(key):
    check_steps(key, True, "float32", rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("key", of_kind("half"))
def test_steps_with_a_master_copy(key):
    check_steps(key, False, "float16", rtol=3e-3, atol=2e-3)


@pytest.mark.parametrize("key", [*of_kind("sparse"), *of_kind("rows")])
def test_steps_with_row_sparse_gradients(key):
    """Of dense and of row_sparse weights."""
    weight = mx.nd.array(GOLDEN["sparse_start"]).tostype("row_sparse" if key.startswith("rows") else "default")
    update = mx.optimizer.get_updater(optimizer(key))
    for rows, values, expected in zip(GOLDEN["sparse_rows"], GOLDEN["sparse_grads"], GOLDEN[key]):
        grad = mx.nd.sparse.row_sparse_array((values, rows), shape=weight.shape, dtype="float32")
        update(0, grad, weight)
        np.testing.assert_allclose(weight.asnumpy(), expected, rtol=1e-4, atol=2e-5)


def stepped(name, config):
    """An updater after the two steps that MXNet's pickles were made after."""
    update = mx.optimizer.get_updater(mx.optimizer.create(name, **config))
    weight = mx.nd.array([1, 2, 3], dtype="float16" if config.get("multi_precision") else "float32")
    for _ in range(2):
        update(0, mx.nd.ones(3, dtype=weight.dtype), weight)
    return update, weight


STATES = {
    "states_sgd": ("sgd", {"momentum": 0.9}, False),
    "states_half": ("sgd", {"momentum": 0.9, "multi_precision": True}, False),
    "states_adam": ("adam", {"wd": 0.1}, True),
}


@pytest.mark.parametrize("key", STATES)
def test_states_of_mxnet_go_on(key):
    name, config, with_optimizer = STATES[key]
    ours, weight = stepped(name, config)
    theirs = mx.optimizer.get_updater(mx.optimizer.create(name, **({} if with_optimizer else config)))
    theirs.set_states(GOLDEN[key].tobytes())
    if with_optimizer:
        assert theirs.optimizer.num_update == 2 and theirs.optimizer.wd == 0.1
        other = weight.copy()
        for update, w in ((ours, weight), (theirs, other)):
            update(0, mx.nd.ones(3), w)
        np.testing.assert_allclose(other.asnumpy(), weight.asnumpy(), rtol=1e-4)
    for a, b in zip(leaves(theirs.states[0]), leaves(ours.states[0])):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-4)


@pytest.mark.parametrize("key", STATES)
def test_states_are_written_as_by_mxnet(key):
    """MXNet's file, read and written again, is the same file."""
    update = mx.optimizer.get_updater(mx.optimizer.SGD())
    update.set_states(GOLDEN[key].tobytes())
    assert update.get_states(STATES[key][2]) == GOLDEN[key].tobytes()


def leaves(state):
    return [leaf for part in state for leaf in leaves(part)] if isinstance(state, tuple) else [state]
