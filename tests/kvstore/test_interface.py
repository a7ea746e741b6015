"""What every type of store has, and what it says where a thing makes no sense for it."""

import inspect

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

from .kinds import ALL, DIST, JOBS, KEEPING, SUMMING, opened

#: Of MXNet 1.9.1's KVStore, with what the public names of private ones are.
MXNETS = (
    "OPTIMIZER _barrier _send_command_to_servers _set_updater broadcast init is_capable load_optimizer_states "
    "num_workers pull push pushpull rank register row_sparse_pull save_optimizer_states set_gradient_compression "
    "set_optimizer type"
).split()
MORE = "barrier close get_num_dead_node num_dead_node send_command_to_servers set_learning_rate set_updater".split()


@pytest.fixture(params=ALL)
def kv(request):
    with opened(request.param) as (store,):
        yield store


@pytest.fixture(params=KEEPING)
def keeping(request):
    with opened(request.param) as (store,):
        yield store


@pytest.fixture(params=SUMMING)
def summing(request):
    with opened(request.param) as (store,):
        yield store


def value(kv, key="w", n=2):
    out = mx.nd.zeros(n)
    kv.pull(key, out=out)
    return out.asnumpy()


def test_a_store_that_keeps_values_has_all_of_it(keeping):
    for name in (*MXNETS, *MORE):
        assert getattr(keeping, name) is not None
        documented = getattr(mx.kv.KVStore, name)
        if not name.startswith("_") and callable(documented):
            assert inspect.getdoc(documented)


def test_what_there_is_to_say_of_workers(kv, capfd):
    assert (kv.rank, kv.num_workers) == (0, 1)
    assert kv.barrier() is None and kv._barrier() is None
    assert kv.num_dead_node() == kv.num_dead_node(0, timeout=5) == kv.get_num_dead_node(0) == 0
    assert kv.send_command_to_servers(7, "x") is None and kv._send_command_to_servers(7, "x") is None
    said = capfd.readouterr().out
    assert said.count("command 7: 'x'") == (2 if kv.type in DIST and hasattr(kv, "_links") else 0)


def test_closing_twice_is_closing(kv):
    assert kv.close() is None and kv.close() is None


@pytest.mark.parametrize("kind", JOBS)
def test_nobody_of_a_job_is_dead(kind):
    with opened(kind, 2) as stores:
        assert [kv.num_dead_node() for kv in stores] == [0, 0]


def test_what_keeps_no_values_says_so(summing):
    one = mx.nd.ones(2)
    assert not summing.is_capable("optimizer") and not hasattr(summing, "init")
    for call in (
        lambda: summing.init("w", one),
        lambda: summing.push("w", one),
        lambda: summing.pull("w", out=one),
        lambda: summing.row_sparse_pull("w", out=one, row_ids=one),
        lambda: summing.set_updater(print),
        lambda: summing.set_learning_rate(1),
    ):
        with pytest.raises(MXNetError, match="does not define .*broadcast and pushpull"):
            call()
    for call in (
        lambda: summing.set_optimizer(mx.optimizer.SGD()),
        lambda: summing.save_optimizer_states("x"),
        lambda: summing.load_optimizer_states("x"),
    ):
        with pytest.raises(NotImplementedError, match="does not define"):
            call()


def test_a_name_that_nobody_knows_is_no_attribute(kv):
    with pytest.raises(AttributeError, match="'fly'"):
        kv.fly()


def test_a_function_updates_where_the_values_are(keeping):
    keeping.init("w", mx.nd.ones(2))
    if keeping.type in DIST and hasattr(keeping, "_links"):
        with pytest.raises(TypeError, match="use set_optimizer"):
            keeping.set_updater(lambda key, pushed, stored: None)
        return
    for name in ("set_updater", "_set_updater"):
        getattr(keeping, name)(lambda key, pushed, stored: stored.__iadd__(2 * pushed))
    keeping.push("w", mx.nd.ones(2))
    assert (value(keeping) == 3).all()
    with pytest.raises(TypeError, match="an updater is a function"):
        keeping.set_updater(3)
    keeping.set_updater(None)
    keeping.push("w", mx.nd.ones(2))
    assert (value(keeping) == 1).all()


def test_a_learning_rate_counts_from_then_on(keeping):
    with pytest.raises(MXNetError, match="set_optimizer first"):
        keeping.set_learning_rate(1)
    keeping.init("w", mx.nd.zeros(2))
    keeping.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    keeping.push("w", mx.nd.ones(2))
    keeping.set_learning_rate(0.25)
    keeping.push("w", mx.nd.ones(2))
    np.testing.assert_allclose(value(keeping), -1.25)


@pytest.mark.parametrize("rate", ["x", None, [1], float("nan")])
def test_what_is_no_rate_is_refused_and_changes_nothing(keeping, rate):
    keeping.init("w", mx.nd.zeros(2))
    keeping.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    with pytest.raises(TypeError, match="a learning rate is a number, not") as caught:
        keeping.set_learning_rate(rate)
    assert isinstance(caught.value, MXNetError)
    assert keeping._updater.optimizer.learning_rate == 1
    keeping.push("w", mx.nd.ones(2))
    assert (value(keeping) == -1).all()


def test_what_makes_no_sense_to_say_of_workers_is_refused(kv):
    for call, words in (
        (lambda: kv.num_dead_node(0, "x"), "a timeout is a number, not 'x'"),
        (lambda: kv.get_num_dead_node(0, float("nan")), "a timeout is a number, not nan"),
        (lambda: kv.send_command_to_servers("x", "y"), "the head of a command is an int, not 'x'"),
        (lambda: kv._send_command_to_servers(1, 2), "the body of a command is a str, not 2"),
    ):
        with pytest.raises(TypeError, match=words) as caught:
            call()
        assert isinstance(caught.value, MXNetError)


BITS = np.array([0.1, 0.3, 0.7, -0.6], "f")
COMPRESSED = [
    ({"type": "2bit", "threshold": 0.5}, np.array([0, 0, 0.5, -0.5], "f")),
    ({"type": "fp16"}, BITS.astype("f2").astype("f")),
    ({"type": "bfloat16"}, mx.nd.array(BITS).astype("bfloat16").astype("f").asnumpy()),
]


@pytest.mark.parametrize("params, numbers", COMPRESSED, ids=lambda p: p["type"] if isinstance(p, dict) else "")
def test_compression(kv, params, numbers):
    kv.set_gradient_compression(params)
    given, out = mx.nd.array(BITS), mx.nd.zeros(4)
    if kv.is_capable("optimizer"):
        kv.init("w", out)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=1, rescale_grad=-1))
    kv.pushpull("w", given, out=out)
    np.testing.assert_array_equal(out.asnumpy(), numbers)
    for bad in (mx.nd.ones(4, dtype="float64"), mx.nd.ones((4, 1)).tostype("row_sparse")):
        if kv.is_capable("optimizer"):
            kv.init(bad.stype, bad)
        with pytest.raises(TypeError, match=f"'{bad.stype}'.*compression is for dense arrays of float32"):
            kv.pushpull(bad.stype, bad)


def test_a_value_keeps_its_dtype(keeping):
    keeping.init("w", mx.nd.zeros(2))
    for dtype in ("float16", "float64", "int32"):
        with pytest.raises(TypeError, match=f"push of key 'w': its value is float32, the array on .* is {dtype}"):
            keeping.push("w", mx.nd.ones(2, dtype=dtype))
    keeping.pull("w", out=(wide := mx.nd.ones(2, dtype="float64")))
    assert value(keeping).tolist() == wide.asnumpy().tolist() == [0, 0]


def test_several_contexts_of_a_worker_are_compressed_together_on_their_way_to_servers(keeping):
    """Devices of one process send theirs one by one, as in MXNet."""
    keeping.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    keeping.init("w", mx.nd.zeros(2))
    keeping.set_optimizer(mx.optimizer.SGD(learning_rate=1, rescale_grad=-1))
    keeping.push("w", [mx.nd.full(2, 0.3), mx.nd.full(2, 0.3, ctx=mx.cpu(1))])
    assert (value(keeping) == (0.5 if "dist" in keeping.type else 0)).all()


@pytest.mark.parametrize(
    "params, kind, words",
    [
        ({"type": "3bit"}, ValueError, "'2bit', 'fp16', 'bfloat16', got '3bit'"),
        ({"type": "2bit", "threshold": 0}, ValueError, "greater than 0"),
        ({"type": "fp16", "threshold": 0.5}, ValueError, "'threshold'; 'fp16' takes no others"),
        ({"type": "2bit", "bits": 2}, ValueError, "'bits'; '2bit' takes 'threshold'"),
        ({}, ValueError, "got None"),
        ("2bit", TypeError, "dict"),
    ],
)
def test_compression_that_nobody_knows(kv, params, kind, words):
    with pytest.raises(kind, match=words) as caught:
        kv.set_gradient_compression(params)
    assert isinstance(caught.value, MXNetError)


def test_the_module_of_servers_is_where_mxnet_had_it():
    import mxcore.kvstore_server

    assert mx.kvstore_server is mxcore.kvstore_server
    assert mx.kvstore_server.KVStoreServer is mx.kvstore.KVStoreServer
    assert mx.kvstore_server._init_kvstore_server_module() is None
