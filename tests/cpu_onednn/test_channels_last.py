"""Programs that train, with images whose channels are last: the same numbers, and few transposes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mxcore as mx
from mxcore import channels_last
from mxcore.executor import CachedOp, passes_off
from mxcore_onednn import calls, last, plan, rules
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, NoMemory
from tests.cpu_onednn.support import check_close
from tests.cpu_onednn.test_regions import Net
from tests.executor.training import arrays_of, steps, trained

pytestmark = pytest.mark.usefixtures("no_plans_are_left")
PASS = "onednn_channels_last"
F = mx.sym


class Smooth(Net):
    """Networks whose gradients do not jump where numbers differ in their last bits."""

    def act(self):
        i = self.pick()
        kind = self.draw(st.sampled_from(["sigmoid", "tanh", "softsign", "softrelu", "elu"]))
        if kind == "elu":
            y = F.LeakyReLU(self.values[i], act_type=kind, slope=1.0)
        else:
            y = F.Activation(self.values[i], act_type=kind)
        self.put(y, self.shapes[i])

    def pool(self):
        large = [i for i, s in enumerate(self.shapes) if min(s[2:]) >= 2]
        if not large:
            return
        i, draw = self.draw(st.sampled_from(large)), self.draw
        n = len(self.shapes[i]) - 2
        y = F.Pooling(
            self.values[i],
            kernel=(2,) * n,
            stride=draw(st.sampled_from([(1,) * n, (2,) * n, (2, 1, 1)[:n]])),
            pad=draw(st.sampled_from([(0,) * n, (0,) * n, (1,) * n, (0, 1, 1)[:n]])),
            pool_type=draw(st.sampled_from(["avg", "sum"])),
            pooling_convention=draw(st.sampled_from(["valid", "full"])),
            count_include_pad=draw(st.booleans()),
        )
        _, (shape,), _ = y.infer_shape(data=self.shapes[0])
        self.put(y, shape)

    def cut(self):
        i = self.pick()
        n, c, *size = self.shapes[i]
        end = self.draw(st.integers(1, c))
        self.put(F.slice_axis(self.values[i], axis=1, begin=0, end=end), (n, end, *size))

    def other(self):
        """What knows no layout: a matrix of numbers for each image."""
        i = self.pick()
        n, c, *size = self.shapes[i]
        y = F.reshape(F.softmax(F.reshape(self.values[i], shape=(n, -1))), shape=(n, c, *size))
        self.put(y, self.shapes[i])

    KINDS = (*[Net.convolution] * 4, Net.norm, Net.norm, act, act, pool, Net.whole, Net.together, Net.join, cut, other)


@st.composite
def networks(draw):
    shape = draw(st.sampled_from([(2, 3, 9, 8), (1, 16, 6, 7), (2, 4, 11), (1, 2, 5, 4, 6), (3, 8, 7, 1)]))
    net = Smooth(draw, shape)
    net.convolution()
    for _ in range(draw(st.integers(1, 12))):
        draw(st.sampled_from(Smooth.KINDS))(net)
    heads = draw(st.lists(st.sampled_from(net.values[1:]), min_size=0, max_size=2)) + [net.values[-1]]
    return mx.sym.Group(heads), shape


def close(found, want):
    """Where gradients cancel, such as those of a bias before a normalization, the rounding of others is left."""
    size = 1 + max(np.abs(b).max(initial=0) for b in want)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * size)


def check(symbol, arrays, **kw):
    with passes_off(PASS):
        want, plain = trained(symbol, arrays, **kw)
    found, executor = trained(symbol, arrays, **kw)
    close(found, want)
    assert not {last.FORWARD, last.BACKWARD} & {*steps(plain)}
    return steps(executor)


@pytest.mark.usefixtures("provider")
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(networks(), st.sampled_from(["write", "add"]))
def test_networks(monkeypatch, net, req):
    """Also those in which it does not pay."""
    monkeypatch.setattr(channels_last, "_worth", lambda turned, spared: True)
    symbol, shape = net
    check(symbol, arrays_of(symbol, data=shape), req=req, steps=2)


def block(x, filters, name, kernel=3, stride=1, act="tanh"):
    pad = kernel // 2
    args = dict(kernel=(kernel, kernel), pad=(pad, pad), stride=(stride, stride), num_filter=filters, no_bias=True)
    y = F.BatchNorm(F.Convolution(x, name=f"{name}_conv", **args), fix_gamma=False, name=f"{name}_norm")
    return F.Activation(y, act_type=act) if act else y


def residual(act="tanh"):
    x = block(F.Variable("data"), 16, "a", act=act)
    y = block(block(x, 32, "b", 1, 2, act=act), 32, "c", act=None)
    x = F.Activation(F.elemwise_add(y, block(x, 32, "d", 1, 2, act=None)), act_type=act)
    x = F.Pooling(x, kernel=(1, 1), global_pool=True, pool_type="avg")
    return F.FullyConnected(F.Flatten(x), num_hidden=5, name="e")


def whole_numbers(symbol, shape):
    """Arrays of small whole numbers, over which sums are exact: every comparison comes out the same."""
    rng = np.random.default_rng(5)
    args, _, _ = symbol.infer_shape(data=shape)
    return {n: mx.nd.array(rng.integers(-2, 3, s)) for n, s in zip(symbol.list_arguments(), args)}


@pytest.fixture
def always_worth(monkeypatch):
    monkeypatch.setattr(channels_last, "_worth", lambda turned, spared: True)


@pytest.mark.usefixtures("provider", "always_worth")
class TestPrograms:
    def test_a_residual_network_is_transposed_at_its_input_alone(self):
        symbol = residual()
        names = check(symbol, arrays_of(symbol, data=(4, 8, 9, 9)), steps=3)
        assert names.count(last.FORWARD) == names.count(last.BACKWARD) == 4
        assert names.count("transpose") == 3  # twice, for data may be written to; and the gradient of the input
        names = check(
            symbol,
            arrays_of(symbol, data=(4, 8, 9, 9)),
            req={**dict.fromkeys(symbol.list_arguments(), "write"), "data": "null"},
        )
        assert names.count("transpose") == 2

    @pytest.mark.parametrize("kind", ["max", "avg"])
    def test_exact_sums_are_the_same(self, kind):
        """Maxima that are equal, positive parts of zero: whoever computes decides alike."""
        x = F.Convolution(F.Variable("data"), kernel=(3, 3), num_filter=8, name="a")
        x = F.Pooling(F.relu(x), kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type=kind)
        x = F.Convolution(x, kernel=(1, 1), num_filter=16, stride=(2, 2), name="b")
        x = F.LeakyReLU(x, act_type="leaky", slope=0.25)
        symbol = F.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=8, name="c")
        arrays = whole_numbers(symbol, (2, 4, 11, 11))

        def exact():
            args = {n: a.copy() for n, a in arrays.items()}
            grads = {n: mx.nd.zeros(a.shape) for n, a in args.items()}
            executor = symbol.bind(mx.cpu(), args, grads)
            out = executor.forward(is_train=True)[0]
            executor.backward(mx.nd.array(np.arange(out.size).reshape(out.shape) % 3))
            return [out.asnumpy(), *(g.asnumpy() for g in grads.values())], steps(executor)

        with passes_off(PASS):
            want, _ = exact()
        found, names = exact()
        assert names.count(last.BACKWARD) == 3
        for a, b in zip(found, want):
            if kind == "max":
                np.testing.assert_array_equal(a, b)
            else:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)

    def test_weights_that_stay(self, monkeypatch):
        """They are kept in the library's layout in training, too, until somebody writes to them."""
        symbol = block(block(F.Variable("data"), 32, "a"), 32, "b")
        arrays = arrays_of(symbol, data=(8, 32, 12, 12))
        reqs = {**dict.fromkeys(symbol.list_arguments(), "null"), "b_norm_gamma": "write"}
        check(symbol, arrays, req=reqs, steps=4)
        args = {n: arrays[n].copy() for n in symbol.list_arguments()}
        aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
        executor = symbol.bind(mx.cpu(), args, {"b_norm_gamma": mx.nd.zeros(32)}, reqs, aux)
        for _ in range(3):
            out = executor.forward(is_train=True)[0]
        args["a_conv_weight"] *= -3
        args["b_conv_weight"] += 1
        out = executor.forward(is_train=True)[0].asnumpy()
        with passes_off(PASS):
            check_close([out], [symbol.bind(mx.cpu(), args, None, "null", aux).forward(is_train=True)[0].asnumpy()])

    def test_where_the_library_fails_others_compute(self, monkeypatch):
        symbol = residual()
        arrays = arrays_of(symbol, data=(2, 8, 9, 9))
        with passes_off(PASS):
            want, _ = trained(symbol, arrays)
        _, executor = trained(symbol, arrays)
        monkeypatch.setattr(plan.Plan, "run", lambda *a, **k: (_ for _ in ()).throw(NoMemory("a test")))
        monkeypatch.setattr(
            calls, "_told", {last.FORWARD, last.BACKWARD, "Pooling", "_backward_Pooling", "Convolution"}
        )
        found, _ = trained(symbol, arrays)
        check_close(found, want)

    def test_learned_slopes(self):
        """As of networks that recognize faces."""
        x = block(F.Variable("data"), 16, "a", act=None)
        x = F.LeakyReLU(x, F.Variable("s_gamma"), act_type="prelu", name="s")
        symbol = F.LeakyReLU(block(x, 24, "b", act=None), F.Variable("t_gamma", shape=(1,)), act_type="prelu", name="t")
        arrays = arrays_of(symbol, data=(2, 8, 9, 9))
        arrays["s_gamma"] = mx.nd.array(np.linspace(0.9, 1.1, 16))
        arrays["t_gamma"] = mx.nd.array([0.95])
        names = check(symbol, arrays, req="add", steps=2)
        assert names.count("transpose") == 5 and "_backward_prelu" in names

    def test_a_part_without_good_code(self):
        """The gradient of a weight of 5x5 for each channel is computed with channels first, the others are not."""
        x = block(F.Variable("data"), 32, "a")
        x = F.Convolution(x, kernel=(5, 5), pad=(2, 2), num_filter=32, num_group=32, name="b")
        names = check(block(x, 16, "c"), arrays_of(block(x, 16, "c"), data=(2, 8, 10, 10)), req="add", steps=2)
        assert names.count(last.FORWARD) == names.count(last.BACKWARD) == 3

    def test_a_few_channels_of_a_group_stay_as_they_are(self):
        x = block(block(F.Variable("data"), 32, "a"), 32, "b")
        x = F.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=32, num_group=8, name="c")
        symbol = block(block(x, 16, "d"), 16, "e")
        names = check(symbol, arrays_of(symbol, data=(2, 8, 10, 10)))
        assert names.count("Convolution") == names.count("_backward_Convolution") == 1

    def test_it_can_be_switched_off(self, monkeypatch):
        monkeypatch.setenv("MXCORE_DISABLE_PASSES", PASS)
        symbol = residual()
        assert last.FORWARD not in steps(trained(symbol, arrays_of(symbol, data=(2, 8, 9, 9)))[1])

    def test_other_dtypes_stay(self):
        symbol = F.Convolution(F.Variable("data"), kernel=(3, 3), num_filter=8, name="a")
        shapes = zip(symbol.list_arguments(), symbol.infer_shape(data=(2, 8, 6, 6))[0])
        args = {n: mx.nd.ones(s, dtype="float64") for n, s in shapes}
        executor = symbol.bind(mx.cpu(), args, {n: a.zeros_like() for n, a in args.items()})
        executor.forward(is_train=True)
        executor.backward(mx.nd.ones((2, 8, 4, 4), dtype="float64"))
        assert last.FORWARD not in steps(executor)


@pytest.mark.usefixtures("provider")
class TestWorth:
    def test_layers_of_many_channels(self):
        symbol = block(block(block(F.Variable("data"), 32, "a"), 32, "b"), 32, "c")
        assert last.FORWARD in check(symbol, arrays_of(symbol, data=(4, 32, 14, 14)))

    def test_what_transposes_more_than_it_spares_stays(self):
        x = F.Variable("data")
        for i in range(3):
            x = F.Convolution(F.LRN(x, nsize=3), kernel=(1, 1), num_filter=8, name=f"c{i}")
        names = check(F.LRN(x, nsize=3), arrays_of(x, data=(2, 8, 6, 6)))
        assert last.FORWARD not in names

    def test_windows_over_words(self):
        """Others compute the gradient of data of one channel, who want it transposed: too much beside the rest."""
        words = F.expand_dims(F.Embedding(F.Variable("data"), input_dim=50, output_dim=20), axis=1)
        parts = []
        for n in (3, 4, 5):
            y = F.relu(F.Convolution(words, kernel=(n, 20), num_filter=16, name=f"conv{n}"))
            parts.append(F.Pooling(y, kernel=(1, 1), global_pool=True, pool_type="max"))
        symbol = F.concat(*parts, dim=1)
        arrays = arrays_of(symbol, data=(8, 30))
        arrays["data"] = mx.nd.array(np.random.default_rng(0).integers(0, 50, (8, 30)))
        reqs = {**dict.fromkeys(symbol.list_arguments(), "write"), "data": "null"}
        assert last.BACKWARD not in check(symbol, arrays, req=reqs)


@pytest.mark.usefixtures("provider", "always_worth")
def test_images_that_a_node_writes_to():
    """Of two copies one would be old."""

    def layers(x, names):
        for name in names:
            x = F.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=8, name=name)
        return F.tanh(x)

    x, g, mom = (F.Variable(name, shape=(2, 8, 9, 9)) for name in ("x", "g", "mom"))
    moved = F.sgd_mom_update(x, g, mom, lr=0.1, momentum=0.5)
    symbol = F.Group([layers(mom, "abc"), moved, layers(mom, "def")])
    arrays = arrays_of(symbol)

    def run():
        aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
        args = {n: arrays[n].copy() for n in symbol.list_arguments()}
        executor = symbol.bind(mx.cpu(), args, None, "null", aux)
        return [y.asnumpy() for y in executor.forward(is_train=True)]

    with passes_off(PASS):
        want = run()
    close(run(), want)


@pytest.mark.usefixtures("provider", "always_worth")
def test_data_that_are_written_before_backward():
    """Gradients use the new ones, as everywhere."""
    symbol = block(block(F.Variable("data"), 16, "a"), 16, "b")
    arrays = arrays_of(symbol, data=(2, 8, 9, 9))

    def run():
        args = {n: arrays[n].copy() for n in symbol.list_arguments()}
        aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
        grads = {n: mx.nd.zeros(a.shape) for n, a in args.items()}
        executor = symbol.bind(mx.cpu(), args, grads, "write", aux)
        out = executor.forward(is_train=True)[0]
        args["data"] *= 2
        args["b_conv_weight"] += 1
        executor.backward(mx.nd.ones(out.shape))
        return [g.asnumpy() for g in grads.values()]

    with passes_off(PASS):
        want = run()
    close(run(), want)


@pytest.mark.usefixtures("provider")
def test_gradients_are_the_takers():
    """Of hybridised blocks, again and again, in several threads."""
    op = CachedOp(residual())
    names = residual().list_inputs()
    arrays = arrays_of(residual(), data=(2, 8, 9, 9))
    args = [arrays[n].copy() for n in names]
    for a in args:
        a.attach_grad()

    def gradients():
        with mx.autograd.record():
            loss = op(*args).sum()
        return mx.autograd.grad(loss, [args[0], args[1]])

    first = gradients()
    kept = [g.asnumpy() for g in first]
    args[0] *= 2
    second = gradients()
    for g, k in zip(first, kept):
        np.testing.assert_array_equal(g.asnumpy(), k)
    assert not np.allclose(second[0].asnumpy(), kept[0])


def geometry(channels, filters, kernel, *, groups=1, size=14, batch=16, stride=1, pad=None):
    pad = kernel // 2 if pad is None else pad
    out = (size + 2 * pad - kernel) // stride + 1
    pair = lambda n: (n, n)  # noqa: E731
    return Geometry(
        (batch, channels, size, size),
        (filters, channels // groups, kernel, kernel),
        (batch, filters, out, out),
        *(pair(stride), pair(pad), pair(1)),
        groups,
        True,
    )


PIECES = "forward", "data", "weight"


@pytest.mark.parametrize(
    "isa, core, g, travel, multiply",
    [
        (ISA_AVX512, "Haswell", geometry(64, 64, 3), "fdw", ""),
        (ISA_AVX512, "Haswell", geometry(512, 512, 1, size=4), "fdw", "fdw"),
        (ISA_AVX512, "SkylakeX", geometry(512, 512, 1, size=4), "fdw", "fdw"),
        (ISA_AVX512, "SkylakeX", geometry(512, 512, 1, size=8), "fdw", ""),
        (ISA_AVX512, "SkylakeX", geometry(1024, 2048, 1, size=14, stride=2), "fdw", "fdw"),
        (ISA_AVX512, "SkylakeX", geometry(512, 1024, 1, size=28, stride=2), "fdw", ""),
        (ISA_AVX2, "Haswell", geometry(512, 512, 1, size=4), "fdw", "fdw"),
        (ISA_AVX2, "Haswell", geometry(64, 256, 1, size=28), "fdw", ""),
        (ISA_AVX2, "Haswell", geometry(256, 512, 1, size=28, stride=2), "fdw", "dw"),
        (ISA_AVX2, "Haswell", geometry(256, 512, 1, size=28, pad=1), "fdw", ""),
        (ISA_AVX512, "Haswell", geometry(32, 32, 3, groups=32), "fdw", ""),
        (ISA_AVX512, "Haswell", geometry(32, 32, 5, groups=32), "fd", ""),
        (ISA_AVX512, "Haswell", geometry(256, 256, 3, groups=32), "", ""),
        (ISA_AVX2, "Haswell", geometry(256, 256, 3, groups=32), "fdw", ""),
        (ISA_AVX2, "Haswell", geometry(128, 128, 3, groups=32), "", ""),
        (ISA_AVX2, "Haswell", geometry(1, 100, 3), "fw", ""),
        (ISA_AVX512, "Haswell", geometry(3, 16, 3), "fw", ""),
        (ISA_AVX512, "Haswell", geometry(8, 16, 3), "fdw", ""),
        (ISA_AVX2, "Haswell", geometry(32, 64, 3, groups=32), "fd", ""),
        (ISA_AVX512, "Haswell", geometry(32, 64, 3, groups=32), "fdw", ""),
        (ISA_AVX512, "Haswell", geometry(128, 128, 3, groups=32), "", ""),
        (ISA_AVX512, "Haswell", geometry(512, 512, 3, groups=32), "fdw", ""),
    ],
)
def test_the_rules(monkeypatch, isa, core, g, travel, multiply):
    monkeypatch.setattr(rules, "blas_core", lambda: core)
    assert "".join(piece[0] for piece in PIECES if rules.travels(isa, piece, g)) == travel
    assert "".join(piece[0] for piece in PIECES if rules.multiplied(isa, piece, g)) == multiply


@pytest.mark.parametrize(
    "isa, convolutions, last",
    [
        (ISA_AVX512, [geometry(64, 64, 3)], True),
        (ISA_AVX2, [geometry(64, 64, 3)], False),
        (ISA_AVX512, [geometry(64, 64, 3), geometry(256, 64, 1)], False),
        (ISA_AVX512, [geometry(64, 64, 3, batch=1), geometry(256, 64, 1, batch=1)], True),
        (ISA_AVX512, [geometry(64, 64, 3, batch=1), geometry(512, 512, 1, batch=1)], False),
        (ISA_AVX512, [geometry(64, 64, 3, groups=4)], False),
        (ISA_AVX512, [geometry(24, 64, 3)], False),
        (ISA_AVX512, [geometry(64, 64, 1)], False),
        (ISA_AVX512, [], False),
    ],
)
def test_where_images_between_layers_have_their_channels_last(isa, convolutions, last):
    assert rules.lies_last(isa, convolutions) is last


@pytest.mark.usefixtures("provider", "always_worth")
def test_products_of_matrices(monkeypatch):
    """By BLAS, with steps, a bias, and gradients that nobody wants."""
    x = F.Variable("data")
    for i, stride in enumerate(((1, 1), (2, 1), (2, 2))):
        x = F.tanh(F.Convolution(x, kernel=(1, 1), stride=stride, num_filter=16, name=f"c{i}"))
    arrays = arrays_of(x, data=(2, 8, 9, 8))
    called = []
    for name in ("_product", "_products"):
        monkeypatch.setattr(last, name, watched(getattr(last, name), called))
    monkeypatch.setattr(last, "multiplied", lambda isa, piece, g: True)
    names = check(x, arrays, req="add", steps=2)
    assert names.count(last.FORWARD) == 3 and len(called) == 2 * (3 + 3)
    some = {**dict.fromkeys(x.list_arguments(), "null"), "c0_weight": "write", "c2_bias": "write"}
    check(x, arrays, req=some)


def watched(function, called):
    def call(*args):
        called.append(function)
        function(*args)

    return call
