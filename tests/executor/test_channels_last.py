"""Images with their channels last on any device: the rules, by the parameter `layout`, and what a device adds."""

import types

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import channels_last
from mxcore._core.manager import manager
from mxcore.channels_last import CONVOLUTIONS
from mxcore.executor import passes_off
from mxcore.plugin import GraphPass, Int, hookimpl, op
from tests.cpu_onednn.test_channels_last import block, close, networks, residual
from tests.executor.training import arrays_of, steps, trained

F = mx.sym
#: Those of plugins that are here, which look for convolutions, too.
OTHERS = "onednn_channels_last", "onednn_layers"


@pytest.fixture
def turning():
    """Register a plugin with a pass; give its name for `passes_off`."""
    added = []

    def turning(**options):
        def nhwc(graph):
            return channels_last.channels_last(graph, CONVOLUTIONS, ["cpu", "gpu"], **options)

        @hookimpl
        def mxcore_graph_passes():
            return [GraphPass("test_nhwc", 0, nhwc, late=True, operators=[*CONVOLUTIONS])]

        plugin = types.ModuleType("turning")
        plugin.API_VERSION, plugin.mxcore_graph_passes = 1, mxcore_graph_passes
        manager.register(plugin, "turning")
        added.append("turning")
        return "test_nhwc"

    yield turning
    for name in added:
        manager.unregister(name)


@pytest.fixture
def always_worth(monkeypatch):
    monkeypatch.setattr(channels_last, "_worth", lambda turned, spared: True)


def layouts(executor, op):
    program = executor._instance(True, True)[0].program
    return [step.p.layout for step in program.steps if step.head < 0 and step.op.name == op]


def check(symbol, arrays, name, **kw):
    """The same numbers, and the executor with the pass."""
    with passes_off(*OTHERS):
        with passes_off(name):
            want, plain = trained(symbol, arrays, **kw)
        found, executor = trained(symbol, arrays, **kw)
    close(found, want)
    assert "NHWC" not in layouts(plain, "Convolution")
    return executor


@pytest.mark.usefixtures("always_worth")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_networks(turning, data):
    if "turning" not in manager.origin:
        turning()
    symbol, shape = data.draw(networks())
    req = data.draw(st.sampled_from(["write", "add"]))
    check(symbol, arrays_of(symbol, data=shape), "test_nhwc", req=req, steps=2)


def test_images_stay_so_from_layer_to_layer(turning):
    name = turning()
    symbol = residual()
    executor = check(symbol, arrays_of(symbol, data=(4, 3, 12, 12)), name)
    assert (
        layouts(executor, "Convolution") == ["NHWC"] * 4 and layouts(executor, "_backward_Convolution") == ["NHWC"] * 4
    )
    # Images move at the input alone, which may be another one by the time of the gradients; filters twice and back.
    assert steps(executor).count("transpose") == 2 + 1 + 4 * 3


def test_where_too_much_is_transposed_a_graph_stays(turning):
    name = turning()
    x = F.Convolution(F.Variable("data"), kernel=(3, 3), num_filter=4, no_bias=True, name="a")
    symbol = F.softmax(x, axis=1)  # which knows no layout
    assert layouts(check(symbol, arrays_of(symbol, data=(2, 3, 9, 9)), name), "Convolution") == [None]


def test_a_device_for_which_it_costs_nothing(turning):
    name = turning(dear=0)
    x = F.Convolution(F.Variable("data"), kernel=(3, 3), num_filter=4, no_bias=True, name="a")
    symbol = F.softmax(x, axis=1)
    assert layouts(check(symbol, arrays_of(symbol, data=(2, 3, 9, 9)), name), "Convolution") == ["NHWC"]


@pytest.mark.usefixtures("always_worth")
@pytest.mark.parametrize("trains", [True, False, None])
def test_programs_that_infer(turning, trains):
    name = turning(trains=trains)
    symbol = block(F.Variable("data"), 8, "a")
    arrays = arrays_of(symbol, data=(2, 3, 6, 6))
    args, aux = ({n: arrays[n] for n in names} for names in (symbol.list_arguments(), symbol.list_auxiliary_states()))

    def inferred():
        executor = symbol.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
        y = executor.forward(is_train=False)[0].asnumpy()
        program = executor._instance(False, False)[0].program
        return y, [s.p.layout for s in program.steps if s.head < 0 and s.op.name == "Convolution"]

    with passes_off(*OTHERS):
        with passes_off(name):
            want, plain = inferred()
        found, turned = inferred()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    assert plain == [None] and turned == [None if trains else "NHWC"]


@pytest.mark.usefixtures("always_worth")
def test_rules_of_a_device(turning):
    """One that knows better, and one for an operator that has none."""
    asked = []

    def flipped(a):
        asked.append((a.node.op.name, a.shapes, a.out, [*a.read]))
        axis = 1 if a.node.params.axis == (2,) else 2
        return channels_last.Layer(channels_last.same(a.node, channels_last.changed(a.node, axis=axis)), [0])

    def never(a):
        return None

    name = turning(rules={"reverse": flipped, "BatchNorm": never, "_backward_BatchNorm": never})
    x = F.Variable("data")
    y = F.slice_axis(block(x, 8, "a", act=None), axis=1, begin=0, end=4)
    symbol = y + F.BlockGrad(F.reverse(F.Convolution(x, kernel=(1, 1), num_filter=4, name="b"), axis=2))
    executor = check(symbol, arrays_of(symbol, data=(2, 3, 6, 5)), name)
    assert ("reverse", [(2, 4, 6, 5)], (2, 4, 6, 5), [True]) in asked
    program = executor._instance(True, True)[0].program
    assert {s.p.axis for s in program.steps if s.op.name == "BatchNorm"} <= {1}


def test_half_precision_where_a_device_wants_it(turning):
    name = turning(dtypes=["float32", "float16"], dear=0)
    x = F.Cast(F.Variable("data"), dtype="float16")
    w = F.Cast(F.Variable("w", shape=(4, 3, 3, 3)), dtype="float16")
    symbol = F.Cast(F.Convolution(x, w, kernel=(3, 3), num_filter=4, no_bias=True, name="a"), dtype="float32")
    arrays = arrays_of(symbol, data=(2, 3, 6, 6))
    with passes_off(*OTHERS):
        with passes_off(name):
            want, plain = trained(symbol, arrays)
        found, turned = trained(symbol, arrays)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)
    assert layouts(plain, "Convolution") == [None] and layouts(turned, "Convolution") == ["NHWC"]


SPREADS = {
    "broadcast_axis": lambda g, y: F.broadcast_axis(g, axis=1, size=4),
    "broadcast_to": lambda g, y: F.broadcast_to(g, shape=(0, 4, 0, 0)),
    "broadcast_like": lambda g, y: F.broadcast_like(g, y),
    "broadcast_like, axes": lambda g, y: F.broadcast_like(g, y, lhs_axes=(1,), rhs_axes=(1,)),
    "square images": lambda g, y: F.broadcast_mul(
        F.broadcast_axis(F.mean(y, axis=(2, 3), keepdims=True), axis=(2, 3), size=(4, 4)), g
    ),
}


@pytest.mark.usefixtures("always_worth")
@pytest.mark.parametrize("how", SPREADS)
@pytest.mark.parametrize("inner", [1, 4])
def test_what_names_axes_or_shapes_knows_them_as_they_are(turning, how, inner):
    """An attention gate: a map of one channel for all of them; with lengths that fit other axes as well."""
    name = turning()
    data = F.Variable("data")
    y = F.Activation(F.Convolution(data, kernel=(3, 3), pad=(1, 1), num_filter=4, name="a"), act_type="tanh")
    g = F.Activation(F.Convolution(y, kernel=(1, 1), num_filter=1, name="g"), act_type="sigmoid")
    symbol = F.sum(F.Convolution(SPREADS[how](g, y) * y, kernel=(1, 1), num_filter=inner, name="b"), axis=1)
    executor = check(symbol, arrays_of(symbol, data=(4, 3, 4, 4)), name)
    assert "NHWC" in layouts(executor, "Convolution")


@pytest.mark.usefixtures("always_worth")
def test_an_operator_of_a_plugin_may_name_an_axis(turning):
    @op("test_flipped_sign", axis=Int(1), grad=lambda F, dy: dy, expr="data * 2")
    def doubled(k, p, data):
        seen.append((data.shape, p.axis))
        return data * 2

    seen = []
    plugin = types.ModuleType("doubling")
    plugin.API_VERSION, plugin.mxcore_ops = 1, hookimpl(lambda: [doubled], specname="mxcore_ops")
    manager.register(plugin, "doubling")
    try:
        name = turning()
        x = F.Convolution(F.Variable("data"), kernel=(3, 3), num_filter=4, no_bias=True, name="a")
        symbol = F.Convolution(F.test_flipped_sign(x, axis=1), kernel=(1, 1), num_filter=2, name="b")
        check(symbol, arrays_of(symbol, data=(2, 3, 7, 6)), name)
        assert {shape for shape, _ in seen} <= {(2, 4, 5, 4)}
    finally:
        manager.unregister("doubling")
