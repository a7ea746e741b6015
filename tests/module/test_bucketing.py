"""BucketingModule: one set of parameters and one memory for all lengths."""

import gc
import tracemalloc

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetWarning

from .conftest import params_of


def sym_gen(length):
    """A recurrence of `length` steps with one weight."""
    w, b = mx.sym.Variable("cell_weight"), mx.sym.Variable("cell_bias")
    x = mx.sym.Variable("data")
    h = mx.sym.zeros((0, 4))
    for t in range(length):
        step = mx.sym.concat(mx.sym.slice_axis(x, axis=1, begin=t, end=t + 1), h, dim=1)
        h = mx.sym.tanh(mx.sym.FullyConnected(step, weight=w, bias=b, num_hidden=4, name=f"t{t}"))
    out = mx.sym.FullyConnected(h, num_hidden=2, name="out")
    return mx.sym.SoftmaxOutput(out, name="softmax"), ("data",), ("softmax_label",)


def batch(length, size=6, seed=0, described=True):
    x = np.random.RandomState(seed * 100 + length).randn(size, length)
    described = (
        dict(provide_data=[("data", (size, length))], provide_label=[("softmax_label", (size,))]) if described else {}
    )
    return mx.io.DataBatch([mx.nd.array(x)], [mx.nd.array(x[:, 0] > 0)], bucket_key=length, **described)


def made(default=6, **kwargs):
    mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=default, **kwargs)
    mod.bind([("data", (6, default))], [("softmax_label", (6,))])
    mx.random.seed(1)
    mod.init_params(mx.init.Uniform(0.5))
    return mod


class Lengths(mx.io.DataIter):
    """Batches of given lengths."""

    default_bucket_key = 6
    provide_data, provide_label = [("data", (6, 6))], [("softmax_label", (6,))]

    def __init__(self, lengths):
        super().__init__(6)
        self.lengths, self.at = lengths, 0

    def reset(self):
        self.at = 0

    def next(self):
        if self.at == len(self.lengths):
            raise StopIteration
        self.at += 1
        return batch(self.lengths[self.at - 1], seed=self.at)


def test_buckets_share_parameters_and_memory():
    mod = made()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.1})
    for length in (6, 3, 5):
        mod.forward_backward(batch(length))
    default = mod._buckets[6]._exec_group.execs[0]
    for key in (3, 5):
        e = mod._buckets[key]._exec_group.execs[0]
        assert e is not default
        for name in mod._buckets[6]._param_names:
            assert e.arg_dict[name] is default.arg_dict[name] and e.grad_dict[name] is default.grad_dict[name]
        assert np.shares_memory(e.arg_dict["data"]._data, default.arg_dict["data"]._data)
        assert e._blocks is default._blocks
    assert mod.data_shapes[0].shape == (6, 5) and mod.symbol is mod._buckets[5].symbol


def test_buckets_compute_as_modules_of_their_own():
    mod = made()
    args, auxs = mod.get_params()
    for length in (3, 6, 4, 3):
        alone = mx.mod.Module(sym_gen(length)[0])
        alone.bind([("data", (6, length))], [("softmax_label", (6,))])
        alone.set_params(args, auxs)
        for m in (mod, alone):
            m.forward_backward(batch(length))
        np.testing.assert_allclose(mod.get_outputs()[0].asnumpy(), alone.get_outputs()[0].asnumpy(), rtol=1e-6)
        for a, b in zip(mod._curr_module._exec_group.grad_arrays, alone._exec_group.grad_arrays):
            np.testing.assert_allclose(a[0].asnumpy(), b[0].asnumpy(), rtol=1e-5, atol=1e-7)


def test_nodes_without_names_are_called_alike_in_every_bucket():
    def unnamed(length):
        x = mx.sym.mean(mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=4), axis=1)
        return (
            mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=2), name="softmax"),
            ("data",),
            ("softmax_label",),
        )

    with mx.name.Prefix("around_"):
        mod = mx.mod.BucketingModule(unnamed, default_bucket_key=6)
    mod.bind([("data", (6, 6))], [("softmax_label", (6,))])
    mod.init_params()
    for length in (6, 3, 5):
        mod.forward(batch(length), is_train=False)
    assert sorted(params_of(mod)) == ["embedding0_weight", "fullyconnected0_bias", "fullyconnected0_weight"]


@pytest.mark.parametrize("contexts", [1, 2])
def test_fit_over_buckets_learns(contexts):
    data = Lengths([6, 3, 4, 3, 5, 6])
    mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=6, context=[mx.cpu(i) for i in range(contexts)])
    mod.fit(
        data, num_epoch=40, optimizer="adam", optimizer_params={"learning_rate": 0.05}, initializer=mx.init.Xavier()
    )
    assert dict(mod.score(data, "acc"))["accuracy"] > 0.9
    assert set(mod._buckets) == {3, 4, 5, 6}
    assert mod.predict(data).shape == (36, 2)


def test_parameters_follow_whatever_bucket_trained():
    mod = made()
    mod.init_optimizer(optimizer_params={"learning_rate": 0.5})
    before = params_of(mod)
    mod.forward_backward(batch(3))
    mod.update()
    after = params_of(mod)
    assert all((before[k] != v).any() for k, v in after.items())
    mod.set_params(*mod.get_params())
    mod.forward(batch(5), is_train=False)
    assert all((params_of(mod)[k] == v).all() for k, v in after.items())


def test_prepare_leaves_the_bucket_of_the_last_batch():
    mod = made()
    mod.forward(batch(3), is_train=False)
    out = mod.get_outputs()[0].asnumpy()
    mod.prepare(batch(5))
    assert mod._curr_bucket_key == 3 and 5 in mod._buckets
    assert (mod.get_outputs()[0].asnumpy() == out).all()


def test_batches_that_do_not_describe_themselves():
    mod, twin = made(), made()
    mod.forward(batch(4, described=False), is_train=False)
    twin.forward(batch(4), is_train=False)
    assert (mod.get_outputs()[0].asnumpy() == twin.get_outputs()[0].asnumpy()).all()
    plain = mx.io.DataBatch([mx.nd.ones((6, 6))], [mx.nd.ones(6)])
    mod.forward(plain, is_train=False)
    assert mod._curr_bucket_key == 6


def test_checkpoints(tmp_path):
    prefix = str(tmp_path / "b")
    mod = made()
    for length in (3, 5):
        mod.forward(batch(length), is_train=False)
    expected = mod.get_outputs()[0].asnumpy()
    mod.save_checkpoint(prefix, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "b-0002.params",
        "b-3-symbol.json",
        "b-5-symbol.json",
        "b-6-symbol.json",
        "b.buckets",
    ]
    keys = mx.nd.load(prefix + ".buckets")[0]
    assert keys.dtype == np.int32 and sorted(keys.asnumpy()) == [3, 5, 6]
    for again in (
        mx.mod.BucketingModule.load(prefix, 2, sym_gen=sym_gen, default_bucket_key=6),
        mx.mod.BucketingModule.load_dict({6: sym_gen(6)[0]}, sym_gen, 6, *mod.get_params()),
    ):
        assert again.params_initialized and not again.binded
        again.bind([("data", (6, 6))], [("softmax_label", (6,))])
        again.forward(batch(5), is_train=False)
        np.testing.assert_allclose(again.get_outputs()[0].asnumpy(), expected, rtol=1e-6)
    with pytest.raises(AssertionError, match="sym_gen is required"):
        mx.mod.BucketingModule.load(prefix, 2)
    with pytest.raises(AssertionError, match="arg_params is required"):
        mx.mod.BucketingModule.load_dict({}, sym_gen, 6)


@pytest.mark.parametrize(
    "content",
    [
        list,
        lambda: {"a": mx.nd.ones(1)},
        lambda: mx.nd.array([np.nan]),
        lambda: mx.nd.array([np.inf]),
        lambda: mx.nd.array([3.7]),
        lambda: mx.nd.array([[6]]),
    ],
    ids=["nothing", "named", "nan", "infinite", "fraction", "matrix"],
)
def test_a_file_of_keys_that_holds_none(tmp_path, content):
    prefix = str(tmp_path / "b")
    made().save_checkpoint(prefix, 1)
    mx.nd.save(f"{prefix}.buckets", content())
    with pytest.raises(mx.base.MXNetError, match=r"b\.buckets' holds no bucket keys"):
        mx.mod.BucketingModule.load(prefix, 1, sym_gen=sym_gen, default_bucket_key=6)


def test_checkpoints_of_other_keys(tmp_path):
    prefix = str(tmp_path / "b")
    made().save_checkpoint(prefix, 7)  # of ints, whose file of keys is none of these
    mod = mx.mod.BucketingModule(lambda key: sym_gen(key[0]), default_bucket_key=(6, 1))
    mod.bind([("data", (6, 6))], [("softmax_label", (6,))])
    mod.init_params()
    mod.save_checkpoint(prefix, 1)
    names = {p.name for p in tmp_path.iterdir()}
    assert "b-(6, 1)-symbol.json" in names and "b.buckets" not in names
    again = mx.mod.BucketingModule.load(prefix, 1, sym_gen=lambda key: sym_gen(key[0]), default_bucket_key=(6, 1))
    again.bind([("data", (6, 6))], [("softmax_label", (6,))])
    assert (params_of(again)["out_weight"] == params_of(mod)["out_weight"]).all()


def test_wrong_use_is_told(caplog):
    with pytest.raises(AssertionError, match="default_bucket_key"):
        mx.mod.BucketingModule(sym_gen)
    with pytest.raises(TypeError, match=r"sym_gen\(6\) must return"):
        mx.mod.BucketingModule(lambda key: sym_gen(key)[0], default_bucket_key=6)
    mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=6)
    assert list(mod.data_names) == ["data"] and mod.output_names == ["softmax_output"]
    for call in (lambda: mod.symbol, lambda: mod.forward(batch(3)), lambda: mod.switch_bucket(3, []), mod.get_params):
        with pytest.raises(AssertionError, match=r"bind\(\)"):
            call()
    with pytest.raises(AssertionError, match="shares among"):
        mod.bind([("data", (6, 6))], shared_module=mod)
    with pytest.raises(AssertionError, match="no bucket"):
        mod.save_checkpoint("x", 1)
    mod = made()
    with pytest.warns(MXNetWarning, match="already initialized"):
        mod.init_params()
    mod.bind([("data", (6, 6))])
    assert "Already bound" in caplog.text
    grown = mx.mod.BucketingModule(
        lambda key: (
            mx.sym.SoftmaxOutput(
                mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name=f"fc{key}"), name="softmax"
            ),
            ("data",),
            ("softmax_label",),
        ),
        default_bucket_key=6,
    )
    grown.bind([("data", (6, 6))], [("softmax_label", (6,))])
    grown.init_params()
    with pytest.raises(ValueError, match="fc3_weight.*it has.*fc6_weight"):
        grown.forward(batch(3))


def test_rebinding_keeps_parameters_and_optimizer():
    mod = made()
    mod.init_optimizer(optimizer="adam")
    mod.forward_backward(batch(3))
    mod.update()
    before = params_of(mod)
    mod.bind([("data", (8, 6))], [("softmax_label", (8,))], force_rebind=True)
    assert all((params_of(mod)[k] == v).all() for k, v in before.items()) and list(mod._buckets) == [6]
    mod.forward_backward(batch(4, size=8))
    mod.update()
    assert any((params_of(mod)[k] != v).any() for k, v in before.items())


@pytest.mark.parametrize("is_train", [True, False])
def test_ten_buckets_need_the_memory_of_the_longest(is_train):
    size = 2048

    def arrays(lengths):
        gc.collect()
        tracemalloc.start()
        try:
            mod = mx.mod.BucketingModule(sym_gen, default_bucket_key=10)
            mod.bind([("data", (size, 10))], [("softmax_label", (size,))])
            mod.init_params()
            for length in lengths:
                mod.forward(batch(length, size=size), is_train=is_train)
                if is_train:
                    mod.backward()
            mx.nd.waitall()
            return sum(t.size for t in tracemalloc.take_snapshot().traces if t.domain == np.lib.tracemalloc_domain)
        finally:
            tracemalloc.stop()

    arrays([10])  # whatever is made once
    assert arrays(range(1, 11)) <= 1.2 * arrays([10])  # rising: the worst order


def test_monitors_watch_all_buckets():
    mod, watched = made(), []

    class Watcher:
        def install(self, exe):
            watched.append(exe)

    mod.install_monitor(Watcher())
    mod.forward(batch(3), is_train=False)
    assert len(watched) == 2 and watched[1] is mod._buckets[3]._exec_group.execs[0]
