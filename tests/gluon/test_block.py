"""Blocks: names, children, hooks, graphs, printed forms."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import Block, HybridBlock, nn


class Inner(Block):
    def __init__(self, **kw):
        super().__init__(**kw)
        with self.name_scope():
            self.a = nn.Dense(3)
            self.b = nn.Dense(3, prefix="foo_")
            with self.b.name_scope():
                self.c = nn.Dense(2)
        self.d = nn.Dense(3)

    def forward(self, x):
        return self.a(x)


class Tied(HybridBlock):
    """Shared parameters, a parameter and a constant of its own, nested outputs."""

    def __init__(self, **kw):
        super().__init__(**kw)
        with self.name_scope():
            self.a = nn.Dense(4, in_units=3)
            self.b = nn.Dense(4, in_units=3, params=self.a.params)
            self.c = nn.HybridSequential()
            with self.c.name_scope():
                self.c.add(nn.Dense(2, in_units=4))
            self.w = self.params.get("w", shape=(2, 2), init="ones")
            self.k = self.params.get_constant("k", mx.nd.ones((2,)))

    def hybrid_forward(self, F, x, w, k):
        y = F.broadcast_add(F.dot(self.c(self.a(x) + self.b(x)), w), k)
        return y, [x, (y, None)]


def names(block):
    return [n for n in block.collect_params().keys() if n.endswith("weight")]


def test_names_outside_and_inside_scopes():
    assert nn.Dense(2).prefix == "dense0_" and nn.Dense(2).prefix == "dense1_"
    assert nn.Activation("relu").prefix == "relu0_" and nn.Conv3D(1, 1).prefix == "conv0_"
    assert nn.MaxPool1D().prefix == "pool0_" and nn.GlobalAvgPool2D().name == "pool1"
    assert names(Inner()) == ["inner0_dense0_weight", "inner0_foo_weight", "inner0_foo_dense0_weight", "dense2_weight"]
    assert names(Inner(prefix="my_"))[:2] == ["my_dense0_weight", "my_foo_weight"]


def test_empty_prefix_is_transparent():
    net = Inner(prefix="")
    assert net.prefix == "" and net.name == ""
    assert names(net) == ["dense0_weight", "foo_weight", "foo_dense0_weight", "dense1_weight"]


def test_sharing_parameters():
    class Twins(Block):
        def __init__(self, **kw):
            super().__init__(**kw)
            with self.name_scope():
                self.x = Inner()
                self.y = Inner(params=self.x.collect_params())

    net = Twins()
    assert net.y.a.weight is net.x.a.weight and net.y.a.prefix == "twins0_inner1_dense0_"
    assert names(net)[:3] == [
        "twins0_inner0_dense0_weight",
        "twins0_inner0_foo_weight",
        "twins0_inner0_foo_dense0_weight",
    ]


def test_name_managers():
    with mx.name.Prefix("pp_"):
        assert nn.Dense(2).prefix == "pp_dense0_"
    counted = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2).name
    assert counted == "fullyconnected0"


def test_scopes_belong_to_threads():
    net, found = Inner(), []
    with net.name_scope():
        t = threading.Thread(target=lambda: found.append(nn.Dense(2, prefix="own_").prefix))
        t.start()
        t.join()
        assert nn.Dense(2).prefix.startswith("inner0_")
    assert found == ["own_"]


def test_scopes_that_an_interrupt_has_left_open_end():
    """Ctrl-C may come before a scope's end has begun, or when its beginning is nearly over."""
    outer, inner = nn.HybridSequential(prefix="outer_"), nn.Dense(2, prefix="inner_")
    with outer.name_scope():
        inner.name_scope().__enter__()
    assert nn.Dense(2, prefix="a_").prefix == "a_" and mx.sym.tanh(mx.sym.var("x"), name="t").name == "t"

    class Interrupted(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.name_scope().__enter__()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted(prefix="gone_")
    gc.collect()
    assert nn.Dense(2, prefix="a_").prefix == "a_" and mx.sym.tanh(mx.sym.var("x"), name="t").name == "t"


def test_collect_params_selects():
    net = Tied()
    chosen = list(net.collect_params(".*bias|.*_w$").keys())
    assert chosen == ["tied0_w", "tied0_dense0_bias", "tied0_hybridsequential0_dense0_bias"]
    assert list(net.params.keys()) == ["tied0_w", "tied0_k"]


def test_printed_form():
    assert repr(Tied()) == (
        "Tied(\n  (a): Dense(3 -> 4, linear)\n  (b): Dense(3 -> 4, linear)\n"
        "  (c): HybridSequential(\n    (0): Dense(4 -> 2, linear)\n  )\n)"
    )


def test_attributes_keep_their_kind():
    net = Inner()
    with pytest.raises(TypeError, match="type for a from .*Dense.* to .*int"):
        net.a = 3
    with pytest.raises(TypeError, match="Dense.*Conv2D"):
        net.a = nn.Conv2D(1, 1)
    net.a = new = nn.Dense(7)
    assert net._children["a"] is new
    with pytest.raises(AssertionError, match="weight is not allowed"):
        new.weight = mx.gluon.Parameter("other")


def test_blocks_in_lists_are_pointed_out():
    net = Inner()
    net.layers = [nn.Dense(2)]
    with pytest.warns(UserWarning, match='"Inner.layers" is an unregistered container'):
        net.collect_params()
    net.register_child(net.layers[0])
    assert net.layers[0].weight.name in net.collect_params()


def test_hybrid_children_must_be_hybrid():
    with pytest.raises(ValueError, match="Lambda.*HybridSequential"):
        nn.HybridSequential().add(nn.Lambda("relu"))


def test_apply_visits_children_first():
    net, seen = Tied(), []
    assert net.apply(lambda b: seen.append(b.name)) is net
    assert seen == [
        "tied0_dense0",
        "tied0_dense1",
        "tied0_hybridsequential0_dense0",
        "tied0_hybridsequential0",
        "tied0",
    ]


def test_hooks():
    net, calls = nn.Dense(2, in_units=3), []
    net.initialize()
    x = mx.nd.ones((1, 3))
    after = net.register_forward_hook(
        lambda block, inputs, output: calls.append(("after", inputs[0] is x, output.shape))
    )
    before = net.register_forward_pre_hook(lambda block, inputs: calls.append(("before", block is net, len(inputs))))
    net(x)
    assert calls == [("before", True, 1), ("after", True, (1, 2))]
    after.detach()
    after.detach()
    net(x)
    assert len(calls) == 3
    before.detach()
    with net.register_forward_hook(lambda *a: calls.append("with")):
        net(x)
    net(x)
    assert calls[3:] == ["with"]


def test_a_hook_may_take_itself_off():
    net, calls = nn.Flatten(), []
    handle = net.register_forward_hook(lambda *a: (calls.append(1), handle.detach()))
    other = net.register_forward_hook(lambda *a: calls.append(2))
    net(mx.nd.ones((1, 1)))
    net(mx.nd.ones((1, 1)))
    assert calls == [1, 2, 2]
    other.detach()


def test_summary(capsys):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Dense(3, in_units=16))
    net.initialize()
    net.summary(mx.nd.ones((1, 2, 4, 4)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "        Layer (type)                                Output Shape         Param #"
    assert lines[3] == "               Input                                (1, 2, 4, 4)               0"
    assert lines[4] == "            Conv2D-1                                (1, 4, 2, 2)              76"
    assert lines[5] == "         BatchNorm-2                                (1, 4, 2, 2)              16"
    assert lines[6] == "             Dense-3                                      (1, 3)              51"
    assert lines[9:15] == [
        "   Total params: 143",
        "   Trainable params: 135",
        "   Non-trainable params: 8",
        "Shared params in forward computation graph: 0",
        "Unique parameters in model: 143",
        "-" * 80,
    ]
    assert all(not layer._forward_hooks for layer in net)


def test_summary_of_shared_parameters_and_nested_outputs(capsys):
    net = Tied()
    net.initialize()
    net.summary(mx.nd.ones((2, 3)))
    text = capsys.readouterr().out
    assert "              Tied-4            (2, 2), [(2, 3), [(2, 2), None]]               6" in text
    assert "Total params: 48" in text and "computation graph: 16" in text and "in model: 32" in text
    net.hybridize()
    with pytest.raises(AssertionError, match="must not be hybridized"):
        net.summary(mx.nd.ones((2, 3)))


def test_summary_shows_no_calls_of_other_threads(capsys):
    net, own = nn.HybridSequential(), threading.get_ident()
    net.add(nn.Dense(4, in_units=3), nn.Dense(2, in_units=4))
    net.initialize()
    net.summary(mx.nd.ones((1, 3)))
    alone = capsys.readouterr().out

    def other(*_):
        if threading.get_ident() == own:
            thread = threading.Thread(target=net, args=(mx.nd.ones((5, 3)),))
            thread.start()
            thread.join(20)

    net[0].register_forward_pre_hook(other)
    net.summary(mx.nd.ones((1, 3)))
    assert capsys.readouterr().out == alone


def test_summary_shows_no_tracing(capsys):
    net = Deferred()
    net.initialize()
    net.summary(mx.nd.ones((2, 5)))
    text = capsys.readouterr().out
    assert "Symbol" not in text and text.count("Dense-1") == 1 and "Total params: 35" in text


# -- hybrid blocks -------------------------------------------------------------------------------------------


class Deferred(HybridBlock):
    """A parameter of the user's own, whose shape only the graph can tell."""

    def __init__(self, **kw):
        super().__init__(**kw)
        with self.name_scope():
            self.w = self.params.get("weight", shape=(4, 0), allow_deferred_init=True)
            self.d = nn.Dense(3)

    def hybrid_forward(self, F, x, w):
        return self.d(F.FullyConnected(x, w, no_bias=True, num_hidden=4))


@pytest.mark.parametrize("hybrid", [False, True])
def test_shapes_of_own_parameters_come_from_the_graph(hybrid):
    net = Deferred()
    net.initialize()
    net.hybridize(hybrid)
    assert net(mx.nd.ones((2, 5))).shape == (2, 3)
    assert net.w.shape == (4, 5) and net.d.weight.shape == (3, 4)


def test_infer_shape_fills_in_everything():
    net = Deferred()
    net.infer_shape(mx.nd.ones((2, 5)))
    assert [p.shape for p in net.collect_params().values()] == [(4, 5), (3, 4), (3,)]


def test_a_subclass_may_add_deferred_parameters():
    class Scaled(nn.Dense):
        def __init__(self, units, **kw):
            super().__init__(units, **kw)
            self.scale = self.params.get("scale", shape=(0,), init="ones", allow_deferred_init=True)

        def hybrid_forward(self, F, x, weight, scale, bias=None):
            return super().hybrid_forward(
                F, F.elemwise_mul(x, F.broadcast_like(F.expand_dims(scale, 0), x)), weight, bias
            )

    # Two-way inference is asked only where the layer's own rule leaves something open.
    layer = Scaled(2, in_units=3)
    layer.scale.shape = (3,)
    layer.initialize()
    assert layer(mx.nd.ones((2, 3))).shape == (2, 2)


def test_failed_inference_is_explained():
    class Impossible(HybridBlock):
        def __init__(self, **kw):
            super().__init__(**kw)
            self.w = self.params.get("w", shape=(0, 3), allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.dot(x, w) if x.shape else x

    net = Impossible()
    net.initialize()
    with pytest.raises(ValueError, match="Impossible 'impossible0' failed because shape cannot be inferred"):
        net(mx.nd.ones((2, 3)))


def test_wrong_inputs():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    for bad in (3, np.ones((1, 3)), {"a": mx.nd.ones((1,))}):
        with pytest.raises(ValueError, match="Dense 'dense0'.*type"):
            net(bad)

    class Both(HybridBlock):
        def hybrid_forward(self, F, x, *args):
            return x

    net = Both()
    with pytest.raises(ValueError, match="mixed NDArrays and Symbols"):
        net(mx.nd.ones((1,)), mx.sym.var("x"))
    assert net(None, mx.nd.ones((1,))) is None
    assert net([mx.nd.ones((1,)), 3])[1] == 3
    net.hybridize()
    with pytest.raises(ValueError, match=r"contexts.*cpu\(0\), cpu\(1\)"):
        net(mx.nd.ones((1,)), mx.nd.ones((1,), ctx=mx.cpu(1)))
    with pytest.raises(ValueError, match="got 3 of type"):
        net(mx.nd.ones((1,)), 3)


def test_undefined_forward():
    with pytest.raises(NotImplementedError, match="Block does not say"):
        Block()(3)
    with pytest.raises(NotImplementedError, match="HybridBlock does not say"):
        HybridBlock()(mx.nd.ones((1,)))


def test_hybridised_equals_eager_with_nested_outputs():
    net = Tied()
    net.initialize()
    x = mx.nd.ones((2, 3))
    y, (same, (z, none)) = net(x)
    net.hybridize(static_alloc=True, static_shape=True)
    y2, (same2, (z2, none2)) = net(x)
    assert (
        none is None and none2 is None and (y.asnumpy() == y2.asnumpy()).all() and (z.asnumpy() == z2.asnumpy()).all()
    )
    net.hybridize(False)
    assert not net._active and not net.c._active
    with pytest.raises(ValueError, match="static_alloc"):
        net.hybridize(static_shape=True)


def test_parts_of_a_hybridised_block_may_take_numbers():
    class Power(HybridBlock):
        def hybrid_forward(self, F, x, exponent, wanted=None):
            return x**exponent if wanted is None else wanted

    class Whole(HybridBlock):
        def __init__(self, **kw):
            super().__init__(**kw)
            self.power = Power()

        def hybrid_forward(self, F, x):
            return self.power(x, 3)

    net = Whole()
    net.hybridize()
    assert net(mx.nd.array([2])).asscalar() == 8
    with pytest.raises(ValueError, match="got 3 of type"):
        net.power(mx.nd.array([2]), 3)


def test_symbols_get_scoped_names():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2, activation="relu"), nn.HybridLambda(lambda F, x: F.relu(x) + 1), nn.Conv2D(3, 3))
    out = net(mx.sym.var("data"))
    assert out.list_arguments() == [
        "data",
        "net_dense0_weight",
        "net_dense0_bias",
        "net_conv0_weight",
        "net_conv0_bias",
    ]
    internals = out.get_internals().list_outputs()
    assert internals[3:6] == ["net_dense0_fwd_output", "net_dense0_relu_fwd_output", "net_hybridlambda0_relu0_output"]


def test_op_hook_sees_every_operator():
    net, seen = nn.HybridSequential(prefix="net_"), []
    with net.name_scope():
        net.add(nn.Dense(2, activation="relu"), nn.BatchNorm())
    net.initialize()
    net.hybridize()
    net.register_op_hook(lambda name, op, array: seen.append((name, op, array.shape)))
    net(mx.nd.ones((1, 3)))
    assert seen == [
        ("net_dense0_fwd_output", "FullyConnected", (1, 2)),
        ("net_dense0_relu_fwd_output", "Activation", (1, 2)),
        ("net_batchnorm0_fwd_output", "BatchNorm", (1, 2)),
    ]
    del seen[:]
    net.register_op_hook(lambda name, op, array: seen.append(name), monitor_all=True)
    net(mx.nd.ones((1, 3)))
    assert seen[:4] == ["net_dense0_fwd_data", "net_dense0_fwd_weight", "net_dense0_fwd_bias", "net_dense0_fwd_output"]


def test_op_hooks_call_what_has_no_name_as_mxnet_does():
    net, seen = nn.HybridSequential(prefix="net_"), []
    with net.name_scope():
        net.add(
            nn.Dense(2, activation="relu"), nn.HybridLambda(lambda F, x: F.softmax(F.squeeze(x * 2 + x)), prefix="f_")
        )
    net.initialize()
    net.hybridize()
    net.register_op_hook(lambda name, op, array: seen.append(name), monitor_all=True)
    net(mx.nd.ones((2, 3)))
    assert seen[4:] == [
        "net_dense0_relu_fwd_input0",
        "net_dense0_relu_fwd_output",
        "net_f__mulscalar0_input0",
        "net_f__mulscalar0_0",
        "net_f__plus0_lhs",
        "net_f__plus0_rhs",
        "net_f__plus0_output",
        "net_f_squeeze0_data",
        "net_f_squeeze0_0",
        "net_f_softmax0_data",
        "net_f_softmax0_output",
    ]


@pytest.mark.parametrize(
    "flag", [{"inline_limit": "abc"}, {"inline_limit": 2.5}, {"forward_bulk_size": "x"}, {"static_alloc": "x"}]
)
def test_flags_of_the_graph_are_checked(flag):
    net = nn.HybridSequential()
    net.add(nn.Dense(2))
    net.initialize()
    net.hybridize(inline_limit="3")
    assert net(mx.nd.ones((2, 3))).shape == (2, 2)
    net.hybridize(**flag)
    with pytest.raises(mx.MXNetError, match=next(iter(flag))):
        net(mx.nd.ones((2, 3)))


def test_hybridizing_with_hooks_warns():
    net = nn.Flatten()
    net.register_forward_hook(lambda *a: None)
    with pytest.warns(UserWarning, match="hooks will not take effect"):
        net.hybridize()


def test_optimize_for_prepares_without_running():
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.Dense(3))
    net.initialize()
    net.optimize_for(mx.nd.ones((1, 4)))
    assert net._active and net[1].weight.data().shape == (3, 2)


# -- life ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("clone", [lambda b: pickle.loads(pickle.dumps(b)), copy.deepcopy])
def test_copies_compute_the_same_and_learn(clone, hybrid):
    net = Tied()
    net.initialize()
    net.hybridize(hybrid)
    x = mx.nd.ones((2, 3))
    y = net(x)[0].asnumpy()
    twin = clone(net)
    assert (twin(x)[0].asnumpy() == y).all() and twin.b.weight is twin.a.weight and twin.a.weight is not net.a.weight
    with mx.autograd.record():
        loss = twin(x)[0].sum()
    loss.backward()
    assert abs(twin.a.weight.grad().asnumpy()).sum() > 0 and abs(net.a.weight.grad().asnumpy()).sum() == 0
    with twin.name_scope():
        assert nn.Dense(1).prefix == "tied0_dense2_"


def test_containers_and_losses_pickle():
    net = nn.Sequential()
    net.add(nn.Dense(3, in_units=4), nn.HybridLambda("relu"), nn.BatchNorm(in_channels=3))
    net.initialize()
    x = mx.nd.ones((2, 4))
    assert (pickle.loads(pickle.dumps(net))(x).asnumpy() == net(x).asnumpy()).all()
    assert repr(pickle.loads(pickle.dumps(mx.gluon.loss.L2Loss()))) == "L2Loss(batch_axis=0, w=1.0)"


def test_a_dropped_network_is_freed_without_the_collector():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=4), nn.BatchNorm(in_channels=3))
    net.initialize()
    net(mx.nd.ones((2, 4)))
    alive = weakref.ref(net)
    gc.disable()
    try:
        del net
        assert alive() is None
    finally:
        gc.enable()


def test_blocks_nested_too_deep_are_a_clear_error():
    net = nn.Sequential()
    for _ in range(400):
        outer = nn.Sequential()
        outer.add(net)
        net = outer
    with pytest.raises(mx.MXNetError, match="nested deeper"):
        net(mx.nd.ones((1, 2)))


class Inside(HybridBlock):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def hybrid_forward(self, F, x):
        return self.inner(x)


@pytest.fixture(scope="module")
def pits():
    """Networks as deep as nothing can go."""
    chain, stack = nn.Dense(2, in_units=2), nn.HybridSequential()
    for _ in range(1600):
        outer = nn.HybridSequential()
        outer.add(stack)
        chain, stack = Inside(chain), outer
    return chain, stack


@pytest.mark.parametrize(
    "what",
    [
        repr,
        copy.deepcopy,
        lambda net: net.collect_params(),
        lambda net: net.collect_params(".*weight"),
        lambda net: net.initialize(),
        lambda net: net.apply(lambda block: None),
        lambda net: net.cast("float16"),
        lambda net: net.hybridize(),
        lambda net: net.register_op_hook(lambda *a: None),
        lambda net: net.summary(mx.nd.ones((1, 2))),
        lambda net: net(mx.nd.ones((1, 2))),
        lambda net: net.save_parameters("never.params"),
        lambda net: net.load_parameters("never.params"),
        lambda net: net.save("never"),
    ],
)
def test_whatever_walks_through_blocks_nested_too_deep_says_so(pits, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mx.nd.save("never.params", {"weight": mx.nd.ones((2, 2))})
    for net in pits:
        with pytest.raises(
            mx.MXNetError, match="blocks are nested deeper than Python's limit of .* calls, or one is inside itself"
        ):
            what(net)


def test_a_copy_of_a_network_shares_nothing_with_it():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=2), nn.BatchNorm(in_channels=2))
    net.add(net[0])
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((1, 2))
    before = net(x).asnumpy()
    twin = copy.deepcopy(net)
    assert twin[0] is twin[2] and twin[0] is not net[0] and type(twin) is type(net)
    twin[0].weight.set_data(twin[0].weight.data() * 3)
    np.testing.assert_array_equal(net(x).asnumpy(), before)
    assert not np.array_equal(twin(x).asnumpy(), before)
