"""Stock passes: with and without each of them a graph gives the same; what each is for shows in the program."""

import re

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.executor import enabled, passes_off
from mxcore.executor.passes.settings import STOCK

sym = mx.sym


@pytest.fixture
def fuse_all(monkeypatch):
    """Small arrays are fused too."""
    from mxcore.executor import compile as module

    monkeypatch.setattr(type(mx.cpu().device), "fused_from", 0)
    module._cache.clear()
    yield
    module._cache.clear()


def mlp():
    x = sym.Activation(sym.FullyConnected(sym.Variable("data"), num_hidden=7, name="fc1"), act_type="tanh", name="act1")
    return sym.SoftmaxOutput(sym.FullyConnected(x, num_hidden=4, name="fc2"), name="softmax"), {"data": (5, 6)}


def lenet():
    x = sym.Variable("data")
    for i, n in enumerate((4, 6)):
        x = sym.Pooling(
            sym.Activation(sym.Convolution(x, kernel=(3, 3), num_filter=n, name=f"conv{i}"), act_type="relu"),
            kernel=(2, 2),
            stride=(2, 2),
            pool_type="max",
        )
    return sym.SoftmaxOutput(sym.FullyConnected(sym.Flatten(x), num_hidden=3, name="fc"), name="softmax"), {
        "data": (2, 1, 14, 14)
    }


def residual():
    x = sym.Variable("data")
    y = x
    for i in range(2):
        y = sym.BatchNorm(
            sym.Convolution(y, kernel=(3, 3), pad=(1, 1), num_filter=3, no_bias=True, name=f"conv{i}"),
            name=f"bn{i}",
            fix_gamma=False,
        )
        y = sym.Activation(y, act_type="relu") if i == 0 else y
    y = sym.Activation(x + y, act_type="relu")
    return sym.sum(sym.square(y) * 0.5 + sym.sigmoid(y)), {"data": (2, 3, 5, 5)}


def elementwise():
    x, w, b = sym.Variable("data"), sym.Variable("w"), sym.Variable("b")
    y = sym.broadcast_add(sym.broadcast_mul(x, w), b)
    z = sym.tanh(y) * sym.exp(-y) + sym.sigmoid(y) + sym.tanh(y)
    return sym.Group([sym.mean(z, axis=1), sym.BlockGrad(z) * 2, x + 1]), {"data": (4, 5), "w": (1, 5), "b": (4, 1)}


def attention():
    q, k, v = (sym.Variable(n) for n in ("data", "k", "v"))
    weights = sym.softmax(sym.batch_dot(q, k, transpose_b=True) / 2.0, axis=-1)
    y = sym.LayerNorm(sym.batch_dot(weights, v) + q, name="ln")
    return sym.reshape(sym.Dropout(y, p=0.5, mode="training", name="drop"), shape=(-1, 4)), dict.fromkeys(
        ("data", "k", "v"), (2, 3, 4)
    )


NETS = [mlp, lenet, residual, elementwise, attention]


def results(make, steps=2):
    net, shapes = make()
    ex = net.simple_bind(mx.cpu(), **shapes)
    r = np.random.RandomState(3)
    for n, a in ex.arg_dict.items():
        a[:] = r.randint(0, 3, a.shape) if "label" in n else r.uniform(-1, 1, a.shape)
    for a in ex.aux_arrays:
        a[:] = 1
    mx.random.seed(5)
    for _ in range(steps):
        ex.forward(is_train=True)
        ex.backward([mx.nd.ones(y.shape) for y in ex.outputs])
    found = [a.asnumpy() for a in (*ex.outputs, *ex.grad_arrays, *ex.aux_arrays)]
    return found + [a.asnumpy() for a in ex.forward()], ex


def agree(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("make", NETS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("off", [[], *[[n] for n in STOCK]], ids=lambda v: "-".join(v) or "all")
def test_off_and_on_agree(make, off, monkeypatch, fuse_all):
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
    on, _ = results(make)
    with passes_off(*off):
        agree(results(make)[0], on)


@pytest.mark.parametrize("make", NETS, ids=lambda f: f.__name__)
def test_a_graph_gives_what_its_nodes_give(make):
    """The program against eager execution of the same symbol on the tape."""
    from mxcore.ops.control import interpret

    found, ex = results(make, steps=1)
    values = {**ex.arg_dict, **{n: mx.nd.ones(a.shape) for n, a in ex.aux_dict.items()}}
    for a in ex.arg_arrays:
        a.attach_grad()
    mx.random.seed(5)
    with mx.autograd.record():
        ys = interpret(ex._symbol._heads, values)
    mx.autograd.backward(ys)
    eager = [y.asnumpy() for y in ys] + [a.grad.asnumpy() for a in ex.arg_arrays]
    agree(eager, found[: len(eager)])


def test_the_environment_switches_passes_off(monkeypatch):
    monkeypatch.setenv("MXCORE_DISABLE_PASSES", "fuse, plan")
    assert enabled() == set(STOCK) - {"fuse", "plan"}
    with passes_off():
        assert not enabled()
    with pytest.raises(MXNetError, match="no graph pass is named 'fusee', did you mean 'fuse'"), passes_off("fusee"):
        pass


def program(net, shapes, **kw):
    ex = net.simple_bind(mx.cpu(), **shapes, **kw)
    return ex._instance(bool(ex._wanted), bool(ex._wanted))[0].program


def test_simplify_computes_equal_things_once():
    x = sym.Variable("data")
    net = sym.sin(x) * sym.cos(sym.sin(x)) + sym.BlockGrad(sym.identity(x))
    with passes_off("fuse"):
        names = [s.op.name for s in program(net, {"data": (3,)}, grad_req="null").steps]
    assert sorted(names) == sorted(["sin", "cos", "elemwise_mul", "elemwise_add"])


def test_simplify_keeps_random_nodes_apart():
    x = sym.Variable("data")
    net = sym.Group([sym.Dropout(x, p=0.5, mode="always"), sym.Dropout(x, p=0.5, mode="always")])
    a, b = net.bind(mx.cpu(), {"data": mx.nd.ones((200,))}).forward()
    assert (a.asnumpy() != b.asnumpy()).any()


def deep(forced, layers=100):
    x = sym.Variable("data")
    for i in range(layers):
        with mx.AttrScope(**({"force_mirroring": "True"} if forced and i % 10 else {})):
            x = sym.Activation(sym.FullyConnected(x, num_hidden=16, name=f"fc{i}"), act_type="tanh", name=f"act{i}")
    return sym.sum(x)


def test_mirroring_makes_the_memory_of_a_deep_net_sublinear():
    sizes, grads = [], []
    for forced in (False, True):
        ex = deep(forced).simple_bind(mx.cpu(), data=(8, 16))
        r = np.random.RandomState(0)
        for a in ex.arg_arrays:
            a[:] = r.uniform(-0.4, 0.4, a.shape)
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones((1,)))
        grads.append(ex.grad_dict["fc0_weight"].asnumpy())
        sizes.append(ex._instance(True, True)[0].program.nbytes / (8 * 16 * 4))
    assert sizes[0] >= 100 and sizes[1] <= 25, sizes  # layers' worth of activations: one of each, and about 2 sqrt(100)
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-6)


def test_planned_memory_is_told():
    net, shapes = lenet()
    with passes_off("onednn_channels_last"):
        ex = net.simple_bind(mx.cpu(), **shapes)
        text = ex.debug_str()
    assert "Convolution conv0(data, conv0_weight, conv0_bias)" in text and "-- backward" in text
    assert f"Planned {ex._instance(True, True)[0].program.nbytes} bytes" in text
    assert re.fullmatch(r"Total \d+ MB allocated", text.split("\n")[-3])  # where scripts that plan memory read it
    with passes_off("plan"):
        other = net.simple_bind(mx.cpu(), **shapes)
        assert other._instance(True, True)[0].program.nbytes > 1.3 * ex._instance(True, True)[0].program.nbytes


def test_an_equal_graph_is_compiled_once():
    from mxcore.executor import compile as module

    net, shapes = mlp()
    first = program(net, shapes)
    assert program(net, shapes) is first and program(mlp()[0], shapes) is first
    assert program(net, {"data": (6, 6)}) is not first
    assert len(module._cache) <= module._LIMIT


def planned(net, mirror, monkeypatch, after=None, **shapes):
    """Megabytes that a training step is planned to need; the variable has `after` once the graph is bound."""
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", mirror)
    ex = net.simple_bind(mx.cpu(), **shapes)
    monkeypatch.setenv("MXNET_BACKWARD_DO_MIRROR", mirror if after is None else after)
    return int(re.search(r"Total (\d+) MB", ex.debug_str())[1])


def gates(short_cut, attr=None, layers=12):
    h = sym.Variable("data")
    for _ in range(layers):
        c = sym.FullyConnected(h, num_hidden=256)
        new = c * sym.sigmoid(c, attr=attr)
        h = h + new if short_cut else new
    return sym.SoftmaxOutput(h)


@pytest.mark.parametrize("short_cut", [False, True])
def test_mirroring_everything_saves_memory_also_beside_short_cuts(short_cut, monkeypatch):
    shapes = {"data": (1024, 256)}
    without, with_ = (planned(gates(short_cut), v, monkeypatch, **shapes) for v in "01")
    assert with_ <= 0.75 * without


def test_mirroring_is_decided_when_a_graph_is_bound(monkeypatch):
    shapes = {"data": (1024, 256)}
    for bound in "01":
        assert planned(gates(False), bound, monkeypatch, "10"[int(bound)], **shapes) == planned(
            gates(False), bound, monkeypatch, **shapes
        )


def test_an_attribute_cannot_forbid_mirroring(monkeypatch):
    found = [
        planned(gates(False, attr), "1", monkeypatch, data=(1024, 256)) for attr in (None, {"force_mirroring": "False"})
    ]
    assert found[0] == found[1]


def test_equal_chains_of_a_graph_are_one_operator(fuse_all):
    ex = gates(False).simple_bind(mx.cpu(), grad_req="null", data=(4, 256))
    ex.forward()
    ((compiled, _),) = ex._instances.values()
    fused = [step.op for step in compiled.program.steps if step.op.name == "_fused"]
    assert len(fused) == 12 and len(set(map(id, fused))) == 1


@pytest.mark.parametrize("loop", ["cond", "foreach", "while_loop"])
def test_mirroring_leaves_stateful_nodes_what_they_kept(loop, monkeypatch):
    x = sym.Variable("data")
    h = sym.tanh(x * 2, attr={"__force_mirroring__": "True"})
    if loop == "cond":
        y = sym.contrib.cond(sym.sum(h) > -100, lambda: h * h, lambda: h + 1)
    elif loop == "foreach":
        y, _ = sym.contrib.foreach(lambda row, s: (row * row + s, s + row), h, sym.Variable("start"))
    else:
        y, _ = sym.contrib.while_loop(lambda v: sym.sum(v) > -100, lambda v: (v * v, v * 0.5), [h], max_iterations=2)
        y = y[0] if isinstance(y, list) else y
    net = sym.tanh(sym.tanh(y))
    shapes = {"data": (4, 4), **({"start": (4,)} if loop == "foreach" else {})}
    found = []
    for off in ((), ("mirror", "plan")):
        with passes_off(*off) if off else passes_off("simplify"):
            ex = net.simple_bind(mx.cpu(), **shapes)
        for a in ex.arg_arrays:
            a[:] = np.linspace(-1, 1, a.size).reshape(a.shape)
        ex.forward(is_train=True)
        ex.backward(mx.nd.ones(ex.outputs[0].shape))
        found.append(ex.grad_dict["data"].asnumpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_a_misspelt_pass_in_the_environment_is_told(monkeypatch):
    monkeypatch.setenv("MXCORE_DISABLE_PASSES", "fuze")
    with pytest.warns(mx.base.MXNetWarning, match="no graph pass is named 'fuze', did you mean 'fuse'"):
        assert "fuse" in enabled()


def test_a_reduction_over_single_elements_is_a_reshape():
    x = sym.Variable("data")
    net = sym.mean(sym.sum(sym.sin(x), axis=1, keepdims=True), axis=0, exclude=True)
    with passes_off("fuse"):
        steps = program(net, {"data": (4, 1)}).steps
    assert not {s.op.name for s in steps if s.op is not None} & {"mean", "sum", "_spread"}
    ex = net.simple_bind(mx.cpu(), data=(4, 1))
    ex.arg_dict["data"][:] = [[0], [1], [2], [3]]
    np.testing.assert_allclose(ex.forward(is_train=True)[0].asnumpy(), np.sin([0, 1, 2, 3]), rtol=1e-6)
    ex.backward(mx.nd.ones((4,)))
    np.testing.assert_allclose(ex.grad_dict["data"].asnumpy()[:, 0], np.cos([0, 1, 2, 3]), rtol=1e-5)


@pytest.mark.parametrize(
    ("variable", "names"),
    [("1", ["a_output", "_mul0_output"]), ("0", ["a_output", "b_output", "_mul0_output", "c_output"])],
)
def test_equal_operators_are_shown_once_unless_told_otherwise(monkeypatch, variable, names):
    monkeypatch.setenv("MXNET_ELIMINATE_COMMON_EXPR", variable)
    x = sym.Variable("x")
    with mx.name.NameManager():
        net = sym.Group([sym.exp(x, name="a") * sym.exp(x, name="b"), sym.exp(x, name="c")])
    ex = net.simple_bind(mx.cpu(), x=(2,))
    assert ("exp b(" in ex.debug_str()) == (variable == "0")
    assert ex.get_optimized_symbol().get_internals().list_outputs() == ["x", *names]
    seen = []
    ex.set_monitor_callback(lambda name, array: seen.append((name, array.asnumpy().tolist())))
    want = [y.asnumpy() for y in ex.forward(is_train=True)]
    assert [n for n, _ in seen] == names and seen[0][1] == [1, 1]
    ex.backward([mx.nd.ones(2)] * 2)
    assert ex.grad_dict["x"].asnumpy().tolist() == [3, 3] and (want[0] == 1).all()
    block = mx.gluon.SymbolBlock(net, [x])
    block.hybridize()
    del seen[:]
    block.register_op_hook(lambda name, op, array: seen.append(name))
    block(mx.nd.ones((2,)))
    assert len(seen) == len(names)
