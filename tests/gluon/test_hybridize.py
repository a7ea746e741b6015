"""Hybridised blocks: one graph a block, traced once; what it is called with and what may change between calls."""

import copy
import gc
import json
import pickle
import threading
import time
import types
import warnings
import weakref

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import call as calls
from mxcore._core import tables
from mxcore._core.graph import Graph, GraphPass, Node
from mxcore._core.manager import manager
from mxcore.executor import compile as compile_module
from mxcore.executor.cached_op import CachedOp
from mxcore.executor.instance import Instance
from mxcore.executor.recent import Recent
from mxcore.gluon import HybridBlock, SymbolBlock, nn
from mxcore.plugin import API_VERSION, hookimpl


class Counted(HybridBlock):
    """``x @ w``, counting how often its Python runs."""

    def __init__(self, units=3, **kw):
        super().__init__(**kw)
        self.runs = 0
        with self.name_scope():
            self.w = self.params.get("w", shape=(units, 0), allow_deferred_init=True)
            self.k = self.params.get_constant("k", mx.nd.array([2.0]))

    def hybrid_forward(self, F, x, w, k):
        self.runs += 1
        y = F.FullyConnected(x, w, num_hidden=self.w.shape[0], no_bias=True)
        return F.broadcast_mul(y, k)


@pytest.fixture
def net():
    """A nest of blocks, hybridised."""
    inner = nn.HybridSequential()
    inner.add(Counted(4), nn.BatchNorm())
    net = nn.HybridSequential()
    net.add(inner, nn.Dropout(0.5), Counted(2))
    net.initialize(mx.init.Uniform(1.0))
    net.hybridize()
    return net


def ones(*shape, **kw):
    return mx.nd.ones(shape, **kw)


def check_like_eager(net, *args):
    """What a hybridised block computes, compared with what it computes eagerly."""
    y = net(*args).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(y, net(*args).asnumpy(), rtol=1e-5, atol=1e-6)
    net.hybridize()
    return y


# -- one graph -----------------------------------------------------------------------------------------------------


def test_python_runs_once_and_makes_one_graph(net, monkeypatch):
    made = []
    monkeypatch.setattr(CachedOp, "__init__", spy(CachedOp.__init__, made))
    for n in (2, 5, 2):
        assert net(ones(n, 3)).shape == (n, 2)
    assert [c.runs for c in (net[0][0], net[2])] == [1, 1] and len(made) == 1
    assert net[0]._cached_op is None and net[2]._cached_op is None
    assert [p.shape for p in net.collect_params(".*_w").values()] == [(4, 3), (2, 4)]
    net.hybridize(clear=False)
    net(ones(2, 3))
    assert len(made) == 1
    net.hybridize()
    net(ones(2, 3))
    assert len(made) == 2


def spy(fn, calls):
    def wrapped(*args, **kwargs):
        calls.append(args)
        return fn(*args, **kwargs)

    return wrapped


def test_flags_reach_the_graph():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True, inline_limit=5, forward_bulk_size=7)
    net(ones(1, 3))
    assert net._cached_op.op.flags == {
        "static_alloc": True,
        "static_shape": True,
        "inline_limit": 5,
        "forward_bulk_size": 7,
    }


def test_a_hybrid_part_of_an_eager_block():
    class Eager(mx.gluon.Block):
        def __init__(self):
            super().__init__()
            self.a, self.b = Counted(4), Counted(2)

        def forward(self, x):
            y = self.a(x)
            return self.b(y) if y.sum().asscalar() > -1e9 else None

    net = Eager()
    net.initialize()
    net.hybridize()
    net(ones(1, 3))
    net(ones(1, 3))
    assert (net.a.runs, net.b.runs) == (1, 1) and net.a._cached_op is not None
    with pytest.raises(ValueError, match="must also be HybridBlock.*Eager"):
        nn.HybridSequential().add(net)


def test_slices_are_blocks_of_their_own(net):
    x = ones(2, 3)
    whole = net(x).asnumpy()
    head, tail = net[:2], net[2:]
    head.hybridize()
    tail.hybridize()
    np.testing.assert_allclose(tail(head(x)).asnumpy(), whole, rtol=1e-6)
    assert head._cached_op is not None and head[0]._cached_op is None
    assert list(head.collect_params()) == list(net.collect_params())[:6]


def test_a_new_child_is_seen():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3))
    net.initialize()
    net.hybridize()
    assert net(ones(1, 3)).shape == (1, 2)
    net.add(nn.Dense(5, in_units=2))
    net[1].initialize()
    assert net(ones(1, 3)).shape == (1, 5)


def test_unused_inputs_and_parameters_are_pointed_out():
    class Careless(HybridBlock):
        def __init__(self):
            super().__init__(prefix="c_")
            self.a = self.params.get("a", shape=(1,))
            self.b = self.params.get("b", shape=(1,))

        def hybrid_forward(self, F, x, y, a, b):
            return F.broadcast_mul(y, b)

    net = Careless()
    net.initialize()
    net.hybridize()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = net(ones(2), 3 * ones(2))
    assert [str(w.message) for w in seen] == [
        "The 0-th input to HybridBlock is not used by any computation. Is this intended?",
        "Parameter c_a is not used by any computation. Is this intended?",
    ]
    np.testing.assert_allclose(y.asnumpy(), 3 * net.b.data().asscalar() * np.ones(2), rtol=1e-6)


def test_symbols_from_elsewhere_are_refused():
    net = nn.HybridLambda(lambda F, x: x + (mx.sym.var("stray") if F is mx.sym else 0))
    net.hybridize()
    with pytest.raises(ValueError, match="Unknown input to HybridBlock: stray"):
        net(ones(1))


def test_an_input_named_like_a_parameter():
    class Clash(HybridBlock):
        def __init__(self):
            super().__init__(prefix="")
            self.w = self.params.get("data", shape=(1,))

        def hybrid_forward(self, F, x, w):
            return x + w

    net = Clash()
    net.initialize()
    net.hybridize()
    with pytest.raises(ValueError, match="both named 'data'"):
        net(ones(1))


def test_no_graph_without_symbols():
    net = nn.HybridLambda(lambda F, x: None)
    net.hybridize()
    with pytest.raises(ValueError, match="HybridLambda.*returned no Symbol"):
        net(ones(1))
    net = nn.HybridLambda(lambda F, x: [x, 3])
    net.hybridize()
    with pytest.raises(ValueError, match="output of HybridBlock must be .*got 3"):
        net(ones(1))


# -- inputs and outputs --------------------------------------------------------------------------------------------


class Nested(HybridBlock):
    def hybrid_forward(self, F, a, states=None, mask=None):
        h, (c,) = states if states is not None else (a * 0, [a * 0 + 1])
        y = a + h * 2 + c * 3
        return (y, [h + 1, [c]]) if mask is None else F.broadcast_mul(y, mask)


def test_nested_inputs_and_outputs():
    net = Nested()
    net.hybridize()
    h, c = 2 * ones(2), 3 * ones(2)
    y, (h2, (c2,)) = net(ones(2), [h, [c]])
    assert y.asnumpy().tolist() == [14, 14] and h2.asnumpy().tolist() == [3, 3]
    assert c2.asnumpy().tolist() == c.asnumpy().tolist()
    assert [i.name for i in net._cached_graph[0]] == ["data0", "data1", "data2"]
    assert net._in_format == [0, [0, [0]]] and net._out_format == [0, [0, [0]]]


def test_none_among_the_inputs():
    net = Nested()
    net.hybridize()
    assert net(ones(2), None, 4 * ones(2)).asnumpy().tolist() == [16, 16]
    assert net._in_format == [0, -1, 0] and [i.name for i in net._cached_graph[0]] == ["data0", "data1"]
    # The end may be left out or be None.
    net.hybridize()
    first = net(ones(2))
    assert net(ones(2), None)[0].asnumpy().tolist() == first[0].asnumpy().tolist()
    assert net(ones(2), None, None)[0].asnumpy().tolist() == first[0].asnumpy().tolist()


def test_another_structure_is_refused():
    net = Nested(prefix="net_")
    net.hybridize()
    net(ones(2), None, ones(2))
    for args in [(ones(2),), (ones(2), [ones(2), [ones(2)]], ones(2)), (ones(2), ones(2), ones(2))]:
        with pytest.raises(ValueError, match=r"structure of Nested 'net_?' does not match.*\[0, -1, 0\].*hybridize"):
            net(*args)
    with pytest.raises(ValueError, match="got 'x' of type"):
        net(ones(2), None, "x")
    with pytest.raises(ValueError, match="one NDArray or one Symbol"):
        net(None)
    with pytest.raises(ValueError, match="mixed NDArrays and Symbols"):
        net(ones(2), None, mx.sym.var("x"))
    assert net(ones(2), None, ones(2)).shape == (2,)


def test_an_operator_of_several_outputs():
    net = nn.HybridLambda(lambda F, x: F.split(x, num_outputs=3, axis=0))
    x = mx.nd.arange(6)
    eager = [y.asnumpy().tolist() for y in net(x)]
    net.hybridize()
    assert [y.asnumpy().tolist() for y in net(x)] == eager == [[0, 1], [2, 3], [4, 5]]


def test_inputs_and_parameters_as_outputs():
    class Passing(HybridBlock):
        def __init__(self):
            super().__init__()
            self.w = self.params.get("w", shape=(2,), init="ones")

        def hybrid_forward(self, F, x, w):
            return x, w, x + w

    net = Passing()
    net.initialize()
    net.hybridize()
    x = 3 * ones(2)
    x.attach_grad()
    with mx.autograd.record():
        a, b, c = net(x)
        total = (a * 2 + b * 3 + c).sum()
    total.backward()
    assert c.asnumpy().tolist() == [4, 4]
    assert x.grad.asnumpy().tolist() == [3, 3] and net.w.grad().asnumpy().tolist() == [4, 4]


def test_outputs_are_fresh(net):
    net.hybridize(static_alloc=True, static_shape=True)
    first = net(ones(2, 3))
    kept = first.asnumpy()
    net(ones(2, 3) * 5)
    assert (first.asnumpy() == kept).all()


def test_a_parameter_given_as_input():
    net = nn.Dense(3, in_units=3, use_bias=False)
    net.initialize()
    net.hybridize()
    w = net.weight.data()
    with mx.autograd.record():
        y = net(w)
    y.backward()
    value = w.asnumpy().astype("float64")
    wanted = value.sum(0, keepdims=True).repeat(3, 0) + value.sum(0)[None, :].repeat(3, 0)
    np.testing.assert_allclose(y.asnumpy(), value @ value.T, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(net.weight.grad().asnumpy(), wanted, rtol=1e-5, atol=1e-7)


# -- parameters ----------------------------------------------------------------------------------------------------


def test_several_contexts(net):
    both = [mx.cpu(0), mx.cpu(1)]
    net.initialize(ctx=both, force_reinit=True)
    for ctx in (*both, *both):
        x = mx.nd.array([[1, 2, 3], [4, 6, 8]], ctx=ctx)
        with mx.autograd.record():
            y = net(x)
        y.backward()
        assert y.context == ctx
    grads = net[2].w.list_grad()
    assert [g.context for g in grads] == both and all(abs(g.asnumpy()).sum() > 0 for g in grads)
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(2\)"):
        net(ones(2, 3, ctx=mx.cpu(2)))
    pair = nn.HybridLambda(lambda F, x, y: x + y)
    pair.hybridize()
    for _ in range(2):  # before and after the graph is there
        with pytest.raises(ValueError, match=r"multiple contexts.*cpu\(0\), cpu\(1\)"):
            pair(ones(1), ones(1, ctx=mx.cpu(1)))
        assert pair(ones(1), ones(1)).asscalar() == 2


@pytest.mark.parametrize("hybrid", [False, True])
def test_arrays_made_inside_are_where_the_inputs_are(hybrid):
    net = nn.HybridLambda(lambda F, x: F.broadcast_add(x, F.ones(shape=(1,))))
    net.hybridize(hybrid)
    for ctx in (mx.cpu(1), mx.cpu(0)):
        y = net(ones(2, ctx=ctx))
        assert y.context == ctx and y.asnumpy().tolist() == [2, 2]


def test_values_set_later_are_seen(net, tmp_path):
    x = ones(2, 3)
    net(x)
    net.save_parameters(str(tmp_path / "p"))
    for change in (
        lambda: net[2].w.set_data(ones(2, 4) * 5),
        lambda: net.initialize(mx.init.One(), force_reinit=True),
        lambda: net.load_parameters(str(tmp_path / "p")),
        lambda: net.collect_params().reset_ctx(mx.cpu(1)),
        lambda: net.collect_params().setattr("grad_req", "null"),
        lambda: net.collect_params(".*w").setattr("grad_req", "add"),
        lambda: net[2].w.cast("float32"),
    ):
        change()
        check_like_eager(net, x.as_in_context(net[2].w.list_ctx()[0]))
    # The array itself was replaced, and nothing was traced anew.
    runs = net[2].runs
    net(x.as_in_context(mx.cpu(1)))
    net.initialize(mx.init.One(), ctx=mx.cpu(0), force_reinit=True)
    assert np.allclose(net(x).asnumpy(), net[2](net[0](x)).asnumpy()) and net[2].runs == runs + 2


def test_learning_after_parameters_were_replaced(net):
    x = ones(2, 3)
    net(x)
    net.initialize(mx.init.One(), force_reinit=True)
    before = net[2].w.data().asnumpy()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    with mx.autograd.record():
        loss = net(x + mx.nd.array([[1], [2]])).sum()
    loss.backward()
    trainer.step(1)
    assert abs(net[2].w.data().asnumpy() - before).sum() > 0.1
    check_like_eager(net, x)


def test_cast(net):
    net(ones(2, 3))
    net.cast("float64")
    y = net(ones(2, 3, dtype="float64"))
    assert y.dtype == np.float64 and net[0][1].gamma.dtype == "float64"
    check_like_eager(net, ones(2, 3, dtype="float64"))


def test_frozen_parameters(net):
    net[0].collect_params().setattr("grad_req", "null")
    x = mx.nd.array([[1, 2, 3], [4, 6, 8]])
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert abs(net[2].w.grad().asnumpy()).sum() > 0
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        net[0][0].w.grad()


def test_statistics_move_in_backward(net):
    x = mx.nd.array([[1, 2, 3], [4, 6, 8]])
    mean = net[0][1].running_mean
    net(x)
    for train, moves in ((False, False), (True, True)):
        before = mean.data().asnumpy()
        with mx.autograd.record(train_mode=train):
            y = net(x)
        assert (mean.data().asnumpy() == before).all()
        y.backward(train_mode=train)
        assert (abs(mean.data().asnumpy() - before).sum() > 1e-3) == moves


def test_modes_switch_at_every_call(net):
    x = mx.nd.array(np.arange(300).reshape(100, 3))
    predicted = net(x).asnumpy()
    with mx.autograd.train_mode():
        trained = net(x).asnumpy()
    assert (net(x).asnumpy() == predicted).all() and abs(trained - predicted).sum() > 1


@pytest.mark.parametrize("hybrid", [False, True])
def test_shared_parameters_and_two_graphs_that_share(hybrid):
    x = mx.sym.var("x")
    one = SymbolBlock(mx.sym.FullyConnected(x, num_hidden=3, name="fc"), x)
    two = SymbolBlock(mx.sym.FullyConnected(x * 2, num_hidden=3, name="fc"), x, params=one.collect_params())

    class Both(HybridBlock):
        def __init__(self):
            super().__init__()
            self.a, self.b = one, two
            self.c = nn.Dense(3, params=self.params, flatten=False)

        def hybrid_forward(self, F, x):
            return self.b(self.a(x)) + self.c(self.c(x))

    net = Both()
    net.initialize(mx.init.One())
    net.hybridize(hybrid)
    with mx.autograd.record():
        y = net(ones(1, 3))
    y.backward()
    # (1 1 1) -> 4 each -> 2 * 12 + 1 each, and 9 through the layer used twice.
    assert y.asnumpy().tolist() == [[34] * 3]
    assert one.collect_params()["fc_weight"].grad().asnumpy()[0, 0] == 2 * 4 + 3 * 2
    assert net.c.weight.grad().asnumpy()[0, 0] == 6 and len(net.collect_params().keys()) == 4


def test_uninitialised_parameters(net):
    plain = nn.Dense(2, in_units=3)
    plain.hybridize()
    with pytest.raises(RuntimeError, match="dense0_weight' has not been initialized"):
        plain(ones(1, 3))
    plain.initialize()
    assert plain(ones(1, 3)).shape == (1, 2)


def test_types_that_contradict_each_other_are_named():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2))
    net.infer_type(ones(1, 3))
    assert np.dtype(net[0].weight.dtype) == np.float32
    with pytest.raises(TypeError, match="net_dense0_fwd.*data float64, weight float32"):
        net.infer_type(ones(1, 3, dtype="float64"))


def test_shapes_that_stay_open_are_named():
    class Open(HybridBlock):
        def __init__(self):
            super().__init__(prefix="o_")
            self.w = self.params.get("w", shape=(0, 3), allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.broadcast_mul(x, F.sum(w))

    net = Open()
    net.initialize()
    net.hybridize()
    with pytest.raises(ValueError, match=r"Open 'o_?' failed because shape cannot be inferred.*o_w \(0, 3\)"):
        net(ones(2))


# -- graphs from outside -------------------------------------------------------------------------------------------


def test_symbol_blocks_inside_hybrid_blocks(tmp_path):
    part = nn.HybridSequential(prefix="part_")
    with part.name_scope():
        part.add(nn.Dense(4, activation="relu"), nn.BatchNorm())
    part.initialize()
    part.hybridize()
    x = mx.nd.array([[1, 2, 3], [4, 5, 7]])
    part(x)
    part.export(str(tmp_path / "part"))
    loaded = SymbolBlock.imports(str(tmp_path / "part-symbol.json"), "data", str(tmp_path / "part-0000.params"))
    net = nn.HybridSequential()
    net.add(loaded, nn.Dense(2, in_units=4))
    net[1].initialize()
    eager = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-6)
    with mx.autograd.record():
        y = net(x)
    y.backward()
    assert abs(loaded.collect_params()["part_dense0_weight"].grad().asnumpy()).sum() > 0
    net.export(str(tmp_path / "net"))
    again = SymbolBlock.imports(str(tmp_path / "net-symbol.json"), "data", str(tmp_path / "net-0000.params"))
    np.testing.assert_allclose(again(x).asnumpy(), net(x).asnumpy(), rtol=1e-6)


def test_symbol_blocks_of_several_inputs_and_outputs():
    a, b = mx.sym.var("a"), mx.sym.var("b")
    halves = mx.sym.split(a * 2, num_outputs=2, axis=0)
    net = SymbolBlock([halves, b + 1], [a, b])
    for _ in range(2):
        (lower, upper), c = net(mx.nd.arange(4), ones(1))
        assert lower.asnumpy().tolist() == [0, 2] and upper.asnumpy().tolist() == [4, 6] and c.asscalar() == 2
        net.hybridize()
    with pytest.raises(ValueError, match="structure of SymbolBlock"):
        net(ones(4))
    with pytest.raises(ValueError, match=r"2 inputs \['a', 'b'\]"):
        net(mx.sym.var("x"))
    with pytest.raises(TypeError, match="outputs must be symbols"):
        SymbolBlock(ones(1), a)


def test_symbol_blocks_cast_and_keep_normalisation_in_float32():
    x = mx.sym.var("data")
    y = mx.sym.BatchNorm(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), name="bn")
    net = SymbolBlock(y, x)
    net.cast("float16")
    types_ = {name: np.dtype(p.dtype).name for name, p in net.collect_params().items()}
    assert {types_[n] for n in ("fc_weight", "fc_bias")} == {"float16"}
    assert {types_[n] for n in ("bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var")} == {"float32"}
    assert net.collect_params()["bn_moving_var"].grad_req == "null"
    net.cast("float64")
    assert {np.dtype(p.dtype).name for p in net.collect_params().values()} == {"float64"}


def test_types_of_parameters_follow_the_graph():
    x = mx.sym.var("data", dtype="float64")
    net = SymbolBlock(mx.sym.FullyConnected(x, num_hidden=2, name="fc"), x)
    net.initialize()
    assert net(ones(1, 3, dtype="float64")).dtype == np.float64


def test_imports_say_how_names_differ(tmp_path):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2, in_units=3), nn.Dense(2, in_units=2))
    net.initialize()
    net.hybridize()
    x = ones(1, 3)
    y = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    graph, params = str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")
    saved = mx.nd.load(params)
    saved["arg:net_dense0_wieght"] = saved.pop("arg:net_dense0_weight")
    saved["arg:momentum"] = ones(1)
    mx.nd.save(params, saved)
    with pytest.raises(AssertionError) as e:
        SymbolBlock.imports(graph, ["data"], params)
    text = str(e.value)
    assert "Parameter 'net_dense0_weight' is missing in file" in text and "'momentum'" in text
    assert "'net_dense0_weight' is wanted, 'net_dense0_wieght' is there" in text
    with pytest.raises(AssertionError, match="'net_dense0_wieght', 'momentum' loaded from.*not present"):
        SymbolBlock.imports(graph, ["data"], params, allow_missing=True)
    part = SymbolBlock.imports(graph, ["data"], params, allow_missing=True, ignore_extra=True)
    part.collect_params()["net_dense0_weight"].initialize()
    part.collect_params()["net_dense0_weight"].set_data(saved["arg:net_dense0_wieght"])
    np.testing.assert_allclose(part(x).asnumpy(), y, rtol=1e-6)
    mx.nd.save(params, {k.replace("net_", "other_"): v for k, v in saved.items() if "dense1" in k})
    with pytest.raises(AssertionError, match="wanted.*is there"):
        net.load_parameters(params)


@pytest.fixture
def scaling():
    """A graph pass of a plugin that multiplies the output by an array of its own, but only as a backend."""

    def scale(graph):
        if "options" not in graph.info:  # also run over every graph that is bound
            return graph
        (head,) = graph.heads
        seen.append((graph.info["options"], str(graph.info["ctx"]), graph.shapes[head]))
        graph.info["args"]["scale"] = mx.nd.array([graph.info["options"]["by"]])
        return Graph(mx.sym.broadcast_mul(mx.sym.Symbol([head]), mx.sym.var("scale"), name="scaled")._heads)

    seen = []
    plugin = types.SimpleNamespace(
        API_VERSION=API_VERSION,
        mxcore_graph_passes=hookimpl(lambda: [GraphPass("scaling", 950, scale)], specname="mxcore_graph_passes"),
    )
    manager.load()
    manager.register(plugin, "scaler", "scaler-dist", "1.0")
    yield seen
    manager.unregister("scaler")


@pytest.mark.parametrize("how", ["optimize_for", "hybridize"])
def test_backends_are_graph_passes(net, scaling, how, tmp_path):
    x = mx.nd.array([[1, 2, 3], [4, 6, 8]])
    plain = net(x).asnumpy()
    if how == "optimize_for":
        net.optimize_for(x, backend="scaling", clear=True, by=3)
        assert scaling and net[2].runs == 2  # nothing runs but the tracing
    else:
        net.hybridize(backend="scaling", by=3)
    for _ in range(2):
        np.testing.assert_allclose(net(x).asnumpy(), plain * 3, rtol=1e-5)
    assert scaling == [({"by": 3}, "cpu(0)", (2, 2))]
    net.export(str(tmp_path / "net"))
    loaded = SymbolBlock.imports(str(tmp_path / "net-symbol.json"), "data", str(tmp_path / "net-0000.params"))
    np.testing.assert_allclose(loaded(x).asnumpy(), plain * 3, rtol=1e-5)
    assert loaded.collect_params()["scale"].data().asscalar() == 3
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), plain, rtol=1e-5)


def test_optimize_for_initialises_and_names_what_is_wrong(net):
    with pytest.raises(ValueError, match="no_such_backend"):
        net.optimize_for(ones(2, 3), backend="no_such_backend")
    with pytest.raises(ValueError, match="needs arrays"):
        net.optimize_for(mx.sym.var("x"))
    net.optimize_for(ones(2, 3), clear=True)
    assert net[2].w.data().shape == (2, 4) and net._cached_op is not None


# -- hooks ---------------------------------------------------------------------------------------------------------


def test_hooks_of_the_whole_run_at_every_call_and_those_inside_once():
    net, seen = nn.HybridSequential(), []
    net.add(nn.Dense(2, in_units=3), nn.Dense(2, in_units=2))
    net.initialize()
    net.hybridize()
    net.register_forward_hook(lambda block, x, y: seen.append(("after", type(y).__name__)))
    net.register_forward_pre_hook(lambda block, x: seen.append(("before", x[0].shape)))
    net[0].register_forward_hook(lambda block, x, y: seen.append(("inside", type(y).__name__)))
    for _ in range(2):
        net(ones(1, 3))
    assert seen == [
        ("before", (1, 3)),
        ("inside", "Symbol"),
        ("after", "NDArray"),
        ("before", (1, 3)),
        ("after", "NDArray"),
    ]


# -- life ----------------------------------------------------------------------------------------------------------


def test_files_between_hybridised_and_eager_nets(net, tmp_path):
    x = ones(2, 3)
    y = net(x).asnumpy()
    net.save_parameters(str(tmp_path / "p"))
    twin = nn.HybridSequential()
    inner = nn.HybridSequential()
    inner.add(Counted(4), nn.BatchNorm())
    twin.add(inner, nn.Dropout(0.5), Counted(2))
    twin.load_parameters(str(tmp_path / "p"))
    np.testing.assert_allclose(twin(x).asnumpy(), y, rtol=1e-5)
    twin.save_parameters(str(tmp_path / "q"))
    twin.hybridize()
    np.testing.assert_allclose(twin(x).asnumpy(), y, rtol=1e-5)
    net.load_parameters(str(tmp_path / "q"))
    np.testing.assert_allclose(net(x).asnumpy(), y, rtol=1e-5)


@pytest.mark.parametrize("clone", [lambda b: pickle.loads(pickle.dumps(b)), copy.deepcopy])
def test_copies_are_hybridised_and_can_be_exported(net, clone, tmp_path):
    x = ones(2, 3)
    y = net(x).asnumpy()
    twin = clone(net)
    twin.export(str(tmp_path / "twin"))
    np.testing.assert_allclose(twin(x).asnumpy(), y, rtol=1e-6)
    assert twin._cached_op is not None and twin._cached_op is not net._cached_op
    net[2].w.set_data(ones(2, 4))
    np.testing.assert_allclose(twin(x).asnumpy(), y, rtol=1e-6)
    loaded = SymbolBlock.imports(str(tmp_path / "twin-symbol.json"), "data", str(tmp_path / "twin-0000.params"))
    np.testing.assert_allclose(clone(loaded)(x).asnumpy(), y, rtol=1e-6)


def test_apply_reaches_every_block(net):
    seen = []
    net.apply(lambda b: seen.append(type(b).__name__))
    assert seen == ["Counted", "BatchNorm", "HybridSequential", "Dropout", "Counted", "HybridSequential"]


def test_threads_share_a_block(net):
    x, found = ones(2, 3), []
    wanted = net(x).asnumpy()
    threads = [threading.Thread(target=lambda: found.append(net(x).asnumpy())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4 and all((y == wanted).all() for y in found)


class Unhurried(HybridBlock):
    """Takes its time while it is traced, and so does its first parameter's initializer."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.inner = nn.Dense(2, weight_initializer=Counts())

    def hybrid_forward(self, F, x):
        if F is mx.sym:
            time.sleep(0.02)
        return self.inner(x)


class Counts(mx.init.Initializer):
    """1 for the first array, 2 for the next."""

    n = 0

    def _init_weight(self, name, arr):
        time.sleep(0.02)
        self.n += 1
        arr[:] = self.n


def in_threads(f, n=4):
    found = []
    threads = [threading.Thread(target=lambda: found.append(f())) for _ in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == n
    return found


def test_other_arrays_take_the_places_of_the_last_calls(monkeypatch):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.HybridLambda(lambda F, x: F.reshape(x, (-1, 2, 2))), nn.Dense(3, "relu"), nn.Dense(2))
    net.initialize(mx.init.Xavier())
    batches = [mx.nd.random.normal(shape=(2, 3)) for _ in range(3)]

    def learn(x):
        x.attach_grad()
        with mx.autograd.record():
            y = net(x)
        y.backward()
        return [a.asnumpy() for a in (y, x.grad, *(p.grad() for p in net.collect_params().values()))]

    wanted = [learn(x) for x in batches]
    net.hybridize()
    outs = []

    def check():
        for i in (0, 1, 0, 2, 2, 1):
            outs.append((i, net(batches[i])))
            for a, b in zip(learn(batches[i]), wanted[i]):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    check()
    monkeypatch.setattr(calls, "observers", (*calls.observers, lambda fn, *of: lambda *args: fn(*args)))
    check()  # who watches is shown other calls
    monkeypatch.undo()
    check()
    for i, y in outs:  # nobody has written to what earlier calls gave
        np.testing.assert_allclose(y.asnumpy(), wanted[i][0], rtol=1e-5, atol=1e-6)


def test_calls_of_kernels_are_bound_once(monkeypatch):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.Dense(2))
    net.initialize()
    eager = [net(ones(2, 3) * i).asnumpy() for i in range(4)]
    net.hybridize()

    def step(i):
        with mx.autograd.record():
            y = net(ones(2, 3) * i)
        y.backward()
        return y.asnumpy()

    step(0)
    monkeypatch.setattr(Instance, "_build", lambda *args: pytest.fail("a step was bound again"))
    for i, y in enumerate(eager):
        np.testing.assert_allclose(step(i), y, rtol=1e-5, atol=1e-6)


def test_threads_bring_arrays_of_their_own():
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.Dense(2))
    net.initialize()
    batches = [ones(2, 3) * i for i in range(4)]
    wanted = [net(x).asnumpy() for x in batches]
    net.hybridize()

    def work():
        return all(np.allclose(net(batches[i % 4]).asnumpy(), wanted[i % 4], 1e-5, 1e-6) for i in range(100))

    assert in_threads(work) == [True] * 4


@pytest.mark.parametrize("active", [False, True])
def test_threads_share_a_first_call(active, monkeypatch):
    """One of them finds out shapes, values and the graph; nobody gets a parameter before autograd knows it."""
    net, mark = Unhurried(), mx.autograd.mark_variables
    monkeypatch.setattr(mx.autograd, "mark_variables", lambda *args: (time.sleep(0.02), mark(*args)))
    net.initialize()
    net.hybridize(active)

    def call():
        with mx.autograd.record():
            y = net(ones(1, 3))
        return y.asnumpy().tolist(), mx.autograd.grad(y, net.inner.weight.data())[0].asnumpy().tolist()

    assert in_threads(call) == [([[3, 3]], [[1, 1, 1], [1, 1, 1]])] * 4


def test_a_thread_that_looked_up_old_arrays_leaves_them_to_nobody(monkeypatch):
    net = nn.Dense(1, in_units=3, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize()
    net(ones(1, 3))
    data = net.weight.data

    def meanwhile(ctx):
        found = data(ctx)
        monkeypatch.undo()
        net.initialize(mx.init.Zero(), force_reinit=True)
        in_threads(lambda: net(ones(1, 3)).asnumpy(), 1)
        return found

    net.cast("float32")
    monkeypatch.setattr(net.weight, "data", meanwhile)
    assert net(ones(1, 3)).asscalar() == 3
    assert net(ones(1, 3)).asscalar() == 0


@pytest.mark.parametrize("table", ["signatures", "programs"])
def test_a_graph_that_another_thread_drops_is_still_run(net, table, monkeypatch):
    net(ones(2, 3))
    wanted = net(ones(1, 3)).asnumpy()
    op = net._cached_op.op

    class Dropped(Recent):
        def get(self, key, default=None):
            found = super().get(key, default)
            self.clear()
            return found

    if table == "signatures":
        op._signatures = Dropped(op._signatures.limit, op._signatures)
    else:
        monkeypatch.setattr(compile_module, "_cache", Dropped(compile_module._cache.limit, compile_module._cache))
        op._signatures.clear()
    op._last = None
    np.testing.assert_array_equal(net(ones(1, 3)).asnumpy(), wanted)


@pytest.fixture
def adding():
    """Register a plugin with a graph pass that adds a number to what the graph gives; all go in the end."""
    names = []

    def add(number):
        def added(graph):
            ((n, i),) = graph.heads
            last = Node(n.op, n.params, n.inputs, n.name, n.attrs)
            return Graph((mx.sym.Symbol([(last, i)]) + number)._heads)

        name = f"adding{len(names)}"
        passes = hookimpl(lambda: [GraphPass(name, 900, added)], specname="mxcore_graph_passes")
        manager.register(types.SimpleNamespace(API_VERSION=API_VERSION, mxcore_graph_passes=passes), name, name, "1.0")
        names.append(name)

    manager.load()
    yield add
    for name in names:
        manager.unregister(name)


def test_who_calls_while_a_pass_comes_does_not_keep_the_graph_of_before(net, adding):
    wanted = net(ones(2, 3)).asnumpy()
    op = net._cached_op.op

    class Slow(Recent):
        """While its programs are freed another thread calls with a shape of its own."""

        def clear(self):
            super().clear()
            net(ones(4, 3))

    op._signatures = Slow(op._signatures.limit, op._signatures)
    adding(5)
    for n in (4, 2):
        np.testing.assert_allclose(net(ones(n, 3)).asnumpy()[:2], wanted + 5, rtol=1e-6)


def test_who_has_looked_for_the_graph_before_a_pass_comes_does_not_leave_it_there(net, adding, monkeypatch):
    wanted = net(ones(2, 3)).asnumpy()
    from mxcore.executor import cached_op

    run_passes, times = cached_op.run_passes, []

    def slow(heads):
        found = run_passes(heads)
        times.append(1)
        if len(times) == 1:
            adding(7)  # comes when this thread has its graph, and has not put it down
        return found

    adding(5)
    monkeypatch.setattr(cached_op, "run_passes", slow)
    net(ones(2, 3))
    np.testing.assert_allclose(net(ones(2, 3)).asnumpy(), wanted + 12, rtol=1e-6)


def test_a_graph_that_runs_node_by_node_is_one_graph(net, adding):
    x = ones(2, 3)
    wanted = net(x).asnumpy()
    op = net._cached_op.op
    args = [x if n == "data" else net.collect_params()[n].data() for n in op._names]
    heads = op._heads
    adding(5)  # meanwhile
    np.testing.assert_allclose(op._by_nodes(heads, args)[0].asnumpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(op._by_nodes(op._heads, args)[0].asnumpy(), wanted + 5, rtol=1e-6)


def test_a_dropped_block_is_gone(net):
    with mx.autograd.record():
        net(ones(2, 3)).backward()
    block, array = nn.Dense(3), None
    block.initialize()
    block.hybridize()
    with mx.autograd.record():
        block(ones(2, 3)).backward()
    array, alive = weakref.ref(block.weight.data()), weakref.ref(block)
    gc.collect()
    gc.disable()
    try:
        del block
        assert alive() is None and array() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("hybrid", [False, True])
def test_states_go_on_to_the_next_batch_as_constants(hybrid):
    cell = mx.gluon.rnn.LSTMCell(3)
    cell.initialize(mx.init.One())
    cell.hybridize(hybrid)
    states, seen = cell.begin_state(2), []
    for _ in range(3):
        with mx.autograd.record():
            y, states = cell(ones(2, 3), states)
        y.backward()
        seen.append(float(cell.h2h_weight.grad().sum().asscalar()))
    np.testing.assert_allclose(seen, [0, 0.0841896, 0.0499872], rtol=1e-5)  # MXNet's
    with pytest.raises(mx.MXNetError, match="freed"):
        y.backward()


def test_a_thread_hybridizes_while_another_traces():
    """It waits until the graph is there, which is the old one, and then drops it."""
    others = []

    class Net(HybridBlock):
        def hybrid_forward(self, F, x):
            if F is mx.sym:
                others.append(threading.Thread(target=self.hybridize))
                others[-1].start()
                time.sleep(0.05)
            return x * 2

    net = Net()
    net.hybridize()
    for _ in range(2):
        assert net(ones(2)).asnumpy().tolist() == [2, 2]
        others[-1].join()
    assert len(others) == 2


def test_a_hook_that_is_taken_away_is_called_to_the_end_of_the_call(net):
    seen = []

    def hook(name, op, x):
        seen.append(name)
        net.register_op_hook(None)

    net(ones(2, 3))
    net.register_op_hook(hook, True)
    net(ones(2, 3))
    n = len(seen)
    net(ones(2, 3))
    assert n > 5 and len(seen) == n


def test_plugins_come_while_threads_make_graphs():
    """What is memoised is forgotten, however much of it is added meanwhile."""
    over, wrong = threading.Event(), []

    def make():
        while not over.is_set():
            try:
                CachedOp(mx.sym.tanh(mx.sym.Variable("x")))
            except Exception as e:
                wrong.append(e)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for _ in range(60):
            tables.changed()
    finally:
        over.set()
        for t in threads:
            t.join()
    assert not wrong, wrong[0]


def test_what_a_hook_gets_is_its_own():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize(mx.init.One())
    net.hybridize()
    kept = []

    def hook(name, op, array):
        kept.append((array, array.asnumpy()))
        array[:] = 0

    net.register_op_hook(hook, monitor_all=True)
    y = net(mx.nd.ones((2, 3)))
    assert y.asnumpy().tolist() == [[3, 3], [3, 3]] and (net.weight.data().asnumpy() == 1).all()
    y[:] = -1
    assert len(kept) == 4 and all((a.asnumpy() == 0).all() for a, _ in kept)


def test_a_graph_that_is_dropped_while_it_is_exported(tmp_path):
    class Beside(nn.Dense):
        """A layer beside which another thread hybridises while it is exported."""

        exports = False

        def collect_params(self, *args):
            if self.exports:
                thread.start()
                thread.join(60)
            return super().collect_params(*args)

    net = Beside(2, in_units=3)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 3)))
    thread = threading.Thread(target=net.hybridize)
    net.exports = True
    net.export(str(tmp_path / "a"))
    net.exports = False
    assert mx.sym.load(str(tmp_path / "a-symbol.json")).list_arguments()[0] == "data" and net._cached_graph == ()
    with pytest.raises(RuntimeError, match="Please first call"):
        net.export(str(tmp_path / "a"))


def test_parameters_are_collected_beside_a_first_call(restless):
    x, failed = mx.nd.ones((1, 2)), []
    for _ in range(150):
        net = nn.HybridLambda(lambda F, x: F.tanh(x))
        for k in range(40):
            setattr(net, f"note{k}", k)
        net.hybridize()
        both = threading.Barrier(2)

        def collect(net=net, both=both):
            both.wait()
            try:
                for _ in range(30):
                    net.collect_params()
                    repr(net)
            except RuntimeError as e:
                failed.append(e)

        thread = threading.Thread(target=collect)
        thread.start()
        both.wait()
        net(x)
        thread.join()
    assert not failed


@pytest.mark.parametrize("active", [True, False])
def test_a_block_may_be_hybridised_while_it_is_traced(active):
    class Changes(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            self.hybridize(active)
            return F.tanh(x) * 2

    net = Changes()
    net.hybridize()
    for n in (1, 2, 1):
        np.testing.assert_allclose(net(mx.nd.ones((n, 3))).asnumpy(), np.full((n, 3), 2 * np.tanh(1)), rtol=1e-6)
    assert net._active is active


@pytest.mark.parametrize("where", ["trace", "build"])
def test_a_first_call_whose_graph_is_dropped_meanwhile(where, monkeypatch):
    """As by `hybridize()` in a signal handler or in another thread, right before the graph is used."""
    from mxcore.gluon.block import hybrid_block

    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Dense(2, in_units=3))
    net.initialize(mx.init.One())
    net.hybridize()
    plain = getattr(hybrid_block, where)

    def dropped(block, *args):
        if where == "build":
            net.hybridize()
        found = plain(block, *args)
        net.hybridize()
        return found

    x = mx.nd.ones((1, 2))
    with monkeypatch.context() as m:
        m.setattr(hybrid_block, where, dropped)
        assert net(x).asnumpy().tolist() == [[6, 6]]
        assert where == "trace" or net._cached_op is None  # what was dropped is not kept
    assert net(x).asnumpy().tolist() == [[6, 6]] and net._cached_op is not None


def test_a_signal_handler_hybridizes_while_a_net_is_traced():
    import signal

    x = mx.nd.ones((4, 5))
    before = signal.signal(signal.SIGALRM, lambda *a: net.hybridize())
    try:
        for _ in range(60):
            net = nn.HybridSequential()
            net.add(nn.Dense(8, in_units=5), nn.Dense(3, in_units=8))
            net.initialize(mx.init.One())
            net.hybridize()
            signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0011)
            found = net(x)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert found.asnumpy().tolist() == net(x).asnumpy().tolist() == [[40] * 3] * 4
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_formats_are_kept_beside_an_exported_graph(tmp_path):
    """As GluonTS does, whose networks take and give nested lists."""

    class Nested(HybridBlock):
        def hybrid_forward(self, F, x, states):
            return x + states[0], [states[1] * 2, [x - 1]]

    net = Nested()
    net.hybridize()
    x, states = mx.nd.ones((2,)), [mx.nd.ones((2,)) * 2, mx.nd.ones((2,)) * 3]
    assert net._in_format is None and net._cached_graph == ()
    net(x, states)
    net.export(str(tmp_path / "a"))
    formats = json.loads(json.dumps({"in": net._in_format, "out": net._out_format}))
    names = [i.name for i in net._cached_graph[0]]
    again = SymbolBlock.imports(str(tmp_path / "a-symbol.json"), names)
    again._in_format, again._out_format = formats["in"], formats["out"]
    for _ in range(2):
        a, (b, [c]) = again(x, states)
        assert [v.asnumpy().tolist() for v in (a, b, c)] == [[3, 3], [6, 6], [0, 0]]
        again.hybridize()
    again = pickle.loads(pickle.dumps(again))
    assert again._in_format == formats["in"] and again(x, states)[1][1][0].asnumpy().tolist() == [0, 0]
    net._cached_graph = ()
    assert net._out_format is None and net(x, states)[0].asnumpy().tolist() == [3, 3]
    with pytest.raises(TypeError, match="the graph of Nested '.*' can be emptied, not be set"):
        net._cached_graph = again._cached_graph
    assert copy.deepcopy(net)._in_format == formats["in"]


def test_formats_are_set_beside_a_backend(net, scaling):
    """The graph that it has made is not given to it once more."""
    x = mx.nd.array([[1, 2, 3], [4, 6, 8]])
    plain = net(x).asnumpy()
    net.hybridize(backend="scaling", by=3)
    net(x)
    net._in_format, net._out_format = net._in_format, net._out_format
    np.testing.assert_allclose(net(x).asnumpy(), plain * 3, rtol=1e-5)
    assert len(scaling) == 1
