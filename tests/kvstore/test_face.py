"""Making stores, reading keys and values, and what is said about bad ones."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import plugin
from mxcore.base import MXNetError


@pytest.fixture
def kv():
    kv = mx.kv.create("local")
    kv.init(3, mx.nd.ones((2, 3)))
    return kv


ONE, WIDE = mx.nd.ones((2, 3)), mx.nd.ones((4, 5), ctx=mx.cpu(1))


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda kv: kv.init(3, ONE), ValueError, "key 3 was initialised before"),
        (lambda kv: kv.broadcast(3, ONE, out=ONE), ValueError, "key 3 was initialised before"),
        (lambda kv: kv.init([4, 4], [ONE, ONE]), ValueError, "key 4 was initialised before"),
        (lambda kv: kv.init(4, [ONE, ONE]), ValueError, "one array for key 4, got 2"),
        (lambda kv: kv.init("a", ONE), TypeError, "'a' is of type str.*int"),
        (lambda kv: kv.init([4, "a"], [ONE, ONE]), TypeError, "all int or all str"),
        (lambda kv: kv.init([4, 5], [ONE]), ValueError, "2 keys .* 1 values"),
        (lambda kv: kv.init([4, 5], ONE), TypeError, "2 keys need a list"),
        (lambda kv: kv.init(1.5, ONE), TypeError, "float 1.5"),
        (lambda kv: kv.init(4, [[ONE]]), TypeError, "key 4 .* got a list of 1"),
        (lambda kv: kv.push(3, []), ValueError, "empty list .* key 3"),
        (lambda kv: kv.push(3, ONE.asnumpy()), TypeError, "key 3 takes an NDArray .* got ndarray"),
        (lambda kv: kv.push(9, ONE), KeyError, "push of key 9, which was not initialised"),
        (lambda kv: kv.pull(9, out=ONE), KeyError, "pull of key 9, which was not initialised"),
        (lambda kv: kv.pull(3), ValueError, "out is needed"),
        (lambda kv: kv.push(3, [ONE, WIDE]), ValueError, r"key 3.*\(2, 3\).*cpu\(1\).*\(4, 5\)"),
        (lambda kv: kv.pull(3, out=WIDE), ValueError, r"key 3.*\(2, 3\).*cpu\(1\).*\(4, 5\)"),
        (
            lambda kv: kv.push(3, [ONE, ONE.astype("float64")]),
            TypeError,
            "push of key 3: its value is float32, the array.* is float64; use",
        ),
        (lambda kv: kv.set_optimizer("sgd"), TypeError, "'sgd'"),
        (lambda kv: kv._set_updater(7), TypeError, "updater .* 7"),
        (lambda kv: kv.push(3, ONE, priority=None), TypeError, "a priority is an int, not None"),
        (lambda kv: kv.pull(3, out=ONE, priority="1"), TypeError, "a priority is an int, not '1'"),
        (lambda kv: kv.pushpull(3, ONE, priority=0.5), TypeError, "a priority is an int, not 0.5"),
        (lambda kv: kv.save_optimizer_states("x"), RuntimeError, "set_optimizer"),
        (lambda kv: kv.load_optimizer_states("x"), RuntimeError, "set_optimizer"),
        (lambda kv: kv.is_capable("fly"), ValueError, "'fly'"),
        (
            lambda kv: kv.set_gradient_compression({"type": "3bit"}),
            ValueError,
            "'2bit', 'fp16', 'bfloat16', got '3bit'",
        ),
        (lambda kv: kv.set_gradient_compression({"type": "2bit", "threshold": 0}), ValueError, "greater than 0"),
        (lambda kv: kv.set_gradient_compression({"type": "2bit", "threshold": "x"}), ValueError, "number, got 'x'"),
        (lambda kv: kv.set_gradient_compression({"type": "2bit", "bits": 2}), ValueError, "'bits'"),
        (lambda kv: kv.set_gradient_compression("2bit"), TypeError, "dict"),
        (lambda kv: mx.kv.create("locl"), KeyError, "'locl', did you mean 'local'"),
        (lambda kv: mx.kv.create("nccl"), KeyError, "'nccl'.*known types: .*local.*; 'nccl' comes with mxcore-cuda"),
        (lambda kv: mx.kv.create(3), TypeError, "name of a type"),
        (lambda kv: mx.kv.KVStoreBase.register(int), TypeError, "KVStoreBase"),
    ],
)
def test_bad_input_is_named(kv, call, kind, words):
    with pytest.raises(kind, match=words) as caught:
        call(kv)
    assert isinstance(caught.value, MXNetError)
    out = mx.nd.zeros((2, 3))
    kv.pull(3, out=out)
    assert (out.asnumpy() == 1).all()  # the store is as it was


def test_a_push_of_several_keys_is_all_or_nothing(kv):
    kv.init(4, mx.nd.zeros(2))
    with pytest.raises(ValueError, match="key 4"):
        kv.push([3, 4], [ONE * 7, ONE])
    out = mx.nd.zeros((2, 3))
    kv.pull(3, out=out)
    assert (out.asnumpy() == 1).all()


def test_numpy_integers_are_keys(kv):
    kv.push(np.int64(3), ONE * 2)
    out = mx.nd.zeros((2, 3))
    kv.pull(3, out=out)
    assert (out.asnumpy() == 2).all()


def test_no_keys_is_nothing_to_do(kv):
    kv.init([], [])
    kv.push([], [])
    assert kv.pull([], out=[]) is None


def test_names_in_any_case():
    assert mx.kv.create("LOCAL").type == "local" and mx.kv.create().type == "local"


def test_registered_stores_are_made_by_name():
    @mx.kv.KVStoreBase.register
    class Silent(mx.kv.KVStoreBase):
        type = "silent"

    try:
        kv = mx.kv.create("Silent")
        assert type(kv) is Silent
        for call in (lambda: kv.rank, lambda: kv.pushpull(0, ONE), lambda: kv.set_optimizer(None)):
            with pytest.raises(NotImplementedError, match="Silent does not define"):
                call()
    finally:
        del mx.kv.KVStoreBase.kv_registry["silent"]


def test_the_test_store_adds_up_and_keeps_nothing():
    kv = mx.kv.create("teststore")
    parts = [mx.nd.ones(2), mx.nd.ones(2, ctx=mx.cpu(1))]
    kv.pushpull([0], [parts])
    assert [p.asnumpy().tolist() for p in parts] == [[2, 2], [2, 2]]
    kv.broadcast(0, mx.nd.full((2,), 3), out=parts)
    assert [p.asnumpy().tolist() for p in parts] == [[3, 3], [3, 3]]
    assert (kv.type, kv.rank, kv.num_workers, kv.is_capable("optimizer")) == ("teststore", 0, 1, False)


def test_plugins_bring_stores_and_are_called_with_the_name():
    from mxcore._core.manager import manager

    class Brings:
        API_VERSION = 1

        @plugin.hookimpl
        def mxcore_kvstores(self):
            return {"echo": lambda name: f"made as {name}"}

    manager.load()
    manager.register(Brings(), "brings")
    try:
        assert mx.kv.create("Echo") == "made as echo"
    finally:
        manager.unregister("brings")
    with pytest.raises(KeyError):
        mx.kv.create("echo")


def test_a_subclass_needs_only_what_it_can_do():
    class Half(mx.kv.KVStore):
        def _init(self, values):
            self.kept = dict(values)

    kv = Half("half")
    kv.init(["a"], [ONE])
    assert kv.type == "half" and list(kv.kept) == ["a"] and repr(kv) == "<KVStore half>"
    for call, word in [
        (lambda: kv.push("a", ONE), "push"),
        (lambda: kv.pull("a", out=ONE), "pull"),
        (lambda: kv.row_sparse_pull("a", out=ONE, row_ids=ONE), "row_sparse_pull"),
        (lambda: kv.set_gradient_compression({}), "compress"),
    ]:
        with pytest.raises(MXNetError, match=word):
            call()


def test_nobody_becomes_a_server_by_hand():
    from mxcore.kvstore import kvstore_server

    assert kvstore_server._init_kvstore_server_module() is None
    with pytest.raises(NotImplementedError, match="KVStoreServer.run"):
        mx.kvstore.KVStoreServer(mx.kv.create("local")).run()


@pytest.mark.parametrize("verb, what", [("save", "save states of"), ("load", "load states into")])
def test_states_of_no_optimizer(verb, what, tmp_path):
    with pytest.raises(AssertionError, match=f"there is no optimizer to {what}; call set_optimizer first"):
        getattr(mx.kv.create("local"), f"{verb}_optimizer_states")(str(tmp_path / "kv.states"))
