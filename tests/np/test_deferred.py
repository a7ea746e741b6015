"""Blocks that say in ``forward`` what they compute: eager and as graphs the same."""

import json
import types

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, gluon, np, npx
from mxcore._core.manager import manager
from mxcore.gluon import nn
from mxcore.plugin import API_VERSION, GraphPass, hookimpl

pytestmark = pytest.mark.usefixtures("numpy_mode")


def _array(*shape):
    return mx.nd.random.uniform(-1, 1, shape=shape).as_np_ndarray()


class Net(gluon.HybridBlock):
    """A child, a parameter of its own, a constant, and what Python decides."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.calls = 0
        with self.name_scope():
            self.dense = nn.Dense(3)
            self.scale = self.params.get("scale", shape=(3,), init="ones")
        self.shift = mx.nd.array([1, 2, 3]).as_np_ndarray()

    def forward(self, x):
        self.calls += 1
        y = np.exp(self.dense(x)) + self.shift + np.exp(self.scale.data())
        if autograd.is_training():
            y = y + 10
        return (y + 1 if x.shape[0] > 2 else y), npx.relu(y)


def _grads(net, x):
    with autograd.record():
        y, z = net(x)
    autograd.backward([y, z])
    return [y, z], {p.name: p.grad().asnumpy() for p in net.collect_params().values()}


def test_eager_and_graph_agree():
    net, x = Net(), _array(4, 5)
    net.initialize()
    for batch in (x, _array(2, 5), _array(3, 5)):
        net.hybridize(False)
        outs, grads = _grads(net, batch)
        plain = net(batch)
        net.hybridize()
        for _ in range(2):
            again, found = _grads(net, batch)
            assert [type(y) for y in again] == [np.ndarray] * 2
            for a, b in zip([*outs, *plain], [*again, *net(batch)]):
                onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
            for name, g in grads.items():
                onp.testing.assert_allclose(g, found[name], rtol=1e-5, atol=1e-6)
                assert onp.abs(g).max() > 0


def test_python_runs_once_for_each_shape_and_mode():
    net = Net()
    net.initialize()
    net(_array(4, 5))
    net.hybridize()
    net.calls = 0
    for _ in range(3):
        for n in (1, 4):
            net(_array(n, 5))
    assert net.calls == 2
    with autograd.record():
        net(_array(4, 5))
    assert net.calls == 3


def test_parameters_that_move_are_read_anew():
    net, x = Net(), _array(4, 5)
    net.initialize()
    net.hybridize()
    before = net(x)[0].asnumpy()
    net.scale.set_data(mx.nd.array([2.0, 2.0, 2.0]))
    onp.testing.assert_allclose(net(x)[0].asnumpy() - before, onp.full((4, 3), onp.e**2 - onp.e), rtol=1e-4)


class Paused(gluon.HybridBlock):
    def forward(self, x):
        with autograd.pause():
            weight = np.exp(x)
        return weight + np.exp(x)


def test_nothing_flows_through_what_was_paused():
    grads = []
    for hybrid in (False, True):
        net, x = Paused(), mx.nd.array([0.0, 1.0]).as_np_ndarray()
        net.hybridize(hybrid)
        x.attach_grad()
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
        onp.testing.assert_allclose(y.asnumpy(), 2 * onp.exp([0, 1]), rtol=1e-6)
        grads.append(x.grad.asnumpy())
    onp.testing.assert_allclose(grads[0], onp.exp([0, 1]), rtol=1e-6)
    onp.testing.assert_array_equal(*grads)


class Noisy(gluon.HybridBlock):
    def forward(self, x):
        return npx.dropout(x, p=0.5)


def test_random_numbers_are_drawn_at_every_call():
    net, x = Noisy(), mx.nd.ones((1000,)).as_np_ndarray()
    net.hybridize()
    with autograd.train_mode():
        first, second = net(x).asnumpy(), net(x).asnumpy()
    assert 300 < (first != second).sum() < 700
    assert (net(x).asnumpy() == 1).all()


def test_inside_of_other_blocks():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4), Paused(), nn.Dense(2))
    net.initialize()
    x = _array(3, 5)
    eager = net(x).asnumpy()
    net.hybridize()
    onp.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-6)


def test_export(tmp_path):
    net, x = Net(prefix="net_"), _array(4, 5)
    net.initialize()
    net.hybridize()
    y = net(x)[0].asnumpy()
    net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    onp.testing.assert_allclose(again(x)[0].asnumpy(), y, rtol=1e-6)


class Writes(gluon.HybridBlock):
    def forward(self, x):
        y = np.exp(x)
        y += 1
        return y


def test_writing_is_refused_in_a_graph():
    net = Writes()
    net.hybridize()
    with pytest.raises(RuntimeError, match="inplace"):
        net(_array(2))


class _Twice(autograd.Function):
    def forward(self, x):
        return x + x

    def backward(self, dy):
        return dy + dy


class Own(gluon.HybridBlock):
    def forward(self, x):
        return _Twice()(np.exp(x))


def test_python_of_its_own_is_refused_in_a_graph():
    net = Own()
    net(_array(2))
    net.hybridize()
    with pytest.raises(NotImplementedError, match="_Twice"):
        net(_array(2))


def test_without_numpy_mode_forward_runs_as_it_stands():
    npx.reset_np()
    calls = []

    class Plain(gluon.HybridBlock):
        def forward(self, x):
            calls.append(x)
            return mx.nd.exp(x)

    net = Plain()
    net.hybridize()
    for _ in range(2):
        assert type(net(mx.nd.ones((2,)))) is mx.nd.NDArray
    assert len(calls) == 2


_PARTS = {
    "column": (lambda x: x[:, 0], {"slice", "_npx_reshape"}),
    "row": (lambda x: x[-1], {"slice", "_npx_reshape"}),
    "element": (lambda x: x[0, 1], {"slice", "_npx_reshape"}),
    "new axes": (lambda x: x[:, None, 1:, None], {"slice", "expand_dims"}),
    "steps": (lambda x: x[::-1, ::2], {"slice"}),
    "itself": (lambda x: x[:] * 2, {"_npi_multiply_scalar"}),
    "all": (lambda x: x[...] * 2, {"_np_copy", "_npi_multiply_scalar"}),
    "list": (lambda x: x[:, [0, 2]], {"_advanced_index"}),
    "mask": (lambda x: x[np.array([True, False, True], dtype=bool)], {"_advanced_index"}),
}


@pytest.mark.parametrize("name", _PARTS)
def test_parts_of_arrays_are_read_from_files(name, tmp_path):
    """Basic indices as operators that MXNet knows."""
    part, operators = _PARTS[name]

    class Part(gluon.HybridBlock):
        def forward(self, x):
            return part(x)

    net, x = Part(), _array(3, 4)
    net.hybridize()
    want = net(x)
    net.export(str(tmp_path / "net"))
    symbol = mx.sym.load(str(tmp_path / "net-symbol.json"))
    assert {n["op"] for n in json.loads(symbol.tojson())["nodes"]} == {"null", *operators}
    params = tmp_path / "net-0000.params"
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(params))
    assert (again(x).asnumpy() == want.asnumpy()).all() and again(x).shape == want.shape


class _Of(gluon.HybridBlock):
    """What a function makes of the inputs, and of a parameter."""

    def __init__(self, fn, **kwargs):
        super().__init__(**kwargs)
        self.fn = fn
        with self.name_scope():
            self.scale = self.params.get("scale", shape=(2,), init="ones")

    def forward(self, *args):
        return self.fn(self.scale.data(), *args)


_NOTHING = mx.nd.zeros((1, 3))[:0].as_np_ndarray()
_OTHERS = [
    lambda w, x, i: x.detach() * x,
    lambda w, x, i: x * w.detach(),
    lambda w, x, i: (x.as_nd_ndarray() * w.as_nd_ndarray()).as_np_ndarray(),
    lambda w, x, i: x[np.arange(2), i] * w[i],
    lambda w, x, i: x[np.argsort(x[:, 0])] * np.array([[1], [2]]),
    lambda w, x, i: x[x > 0] ** 2,
    lambda w, x, i: x[:, x[1] > 0].sum(1) * w,
    lambda w, x, i: mx.nd.take(x.as_nd_ndarray(), i.as_nd_ndarray()).as_np_ndarray() * x,
    lambda w, x, i: np.concatenate([x, _NOTHING[:, :2]]) * 2,
    lambda w, x, i: x * 2 if str(x) and repr(x) else x,
]


@pytest.mark.filterwarnings("ignore:.* is not used by any computation")
def test_nothing_of_the_first_call_stays():
    """Values, indices and masks of later calls are theirs, also where they come by views and other faces."""
    batches = [([[1.0, -2.0], [3.0, 4.0]], [0, 1]), ([[5.0, 6.0], [-7.0, 8.0]], [1, 0])]
    for at, fn in enumerate(_OTHERS):
        found = []
        for hybrid in (False, True):
            net = _Of(fn, prefix="net_")
            net.initialize()
            net.hybridize(hybrid)
            for x, i in batches:
                x, i = np.array(x), np.array(i, dtype="int32")
                net.scale.set_data(np.array(x[1]))
                x.attach_grad()
                with autograd.record():
                    y = net(x, i)
                y.backward()
                found.append([y.asnumpy(), x.grad.asnumpy(), net.scale.grad().asnumpy()])
        for eager, graph in zip(found[:2], found[2:]):
            for a, b in zip(eager, graph):
                onp.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"function {at}")


_KEPT = np.zeros(2)


def _gradient(w, x):
    x.attach_grad()
    return x


_REFUSED = [
    lambda w, x: x * x.sum().item(),
    lambda w, x: x if x.sum() > 0 else -x,
    lambda w, x: x * onp.from_dlpack(x)[0, 0].item(),
    lambda w, x: mx.nd.from_dlpack(x.as_nd_ndarray().to_dlpack_for_read()).as_np_ndarray() * x,
    lambda w, x: x * onp.from_dlpack(w)[0].item(),
    lambda w, x: x * float(w[0]),
    lambda w, x: np.array(x.asnumpy()) * x,
    lambda w, x: np.array([x[0, 0], x[0, 1]]) * x,
    _gradient,
    lambda w, x: autograd.grad(np.exp(x), x)[0],
    lambda w, x: (np.exp(x).backward(), x)[1],
    lambda w, x: np.add(x[0], 1, out=_KEPT) * x,
    lambda w, x: (x.as_in_ctx(mx.cpu(1)) * 2).as_in_ctx(mx.cpu(0)),
    lambda w, x: (_KEPT.__setitem__(x[0] > 0, 1), x * _KEPT)[1],
    lambda w, x: (_KEPT.__setitem__(0, x[0, 0]), x * _KEPT)[1],
]


def test_what_a_graph_cannot_hold_is_refused():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for at, fn in enumerate(_REFUSED):
        net = _Of(fn, prefix="net_")
        net.initialize()
        net.hybridize()
        with pytest.raises((NotImplementedError, RuntimeError), match=r"noted as a graph|inplace"):
            net(x)
            pytest.fail(f"function {at}")
    assert (_KEPT.asnumpy() == 0).all() and _KEPT._entry is None


class _Modes(gluon.HybridBlock):
    def forward(self, x):
        y = x * 2 if autograd.is_recording() else x * 3
        with autograd.pause(train_mode=autograd.is_training()):
            y = y + 1 if autograd.is_recording() else y
        return y * 100 if autograd.is_training() else y


def _in_all_modes(net, x):
    found = [net(x).tolist()]
    for record, train in ((True, True), (True, False), (False, True)):
        with autograd.record(train) if record else autograd.train_mode() if train else autograd.pause():
            found.append(net(x).tolist())
    return found


def test_what_python_asks_of_the_mode_is_that_of_the_call():
    x, plain, net = np.array([1.0]), _Modes(), _Modes()
    net.hybridize()
    for _ in range(2):
        assert _in_all_modes(net, x) == _in_all_modes(plain, x) == [[3.0], [200.0], [2.0], [300.0]]


class _Mixed(gluon.HybridBlock):
    """Parts that keep to a mode of their own, whatever that of the call is."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.drop, self.norm = nn.Dropout(0.5), nn.BatchNorm(in_channels=3)
            self.bent = nn.HybridSequential()
            self.bent.add(nn.Dropout(0.25))

    def forward(self, x):
        a = self.drop(x)
        with autograd.predict_mode():
            b = self.norm(x) + self.drop(x)
        with autograd.train_mode():
            c = self.bent(x)
        with autograd.pause():
            d = self.drop(x)
        return a, b, c, d, self.drop(x)


@pytest.mark.parametrize("static", [False, True])
def test_what_is_computed_in_a_mode_of_its_own_is_so_in_a_graph(static):
    x, found = _array(64, 3), []
    for hybrid in (False, True):
        net = _Mixed(prefix="net_")
        net.initialize()
        net.hybridize(hybrid, static_alloc=static, static_shape=static)
        mx.random.seed(5)
        x.attach_grad()
        for record in (False, True, True, False):
            with autograd.record() if record else autograd.pause():
                ys = net(x)
            if record:
                autograd.backward([ys[i] for i in (0, 1, 2, 4)])
            found.append([*[y.asnumpy() for y in ys], x.grad.asnumpy(), net.norm.running_mean.data().asnumpy()])
    for eager, graph in zip(found[:4], found[4:]):
        for a, b in zip(eager, graph):
            onp.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    _, trained, _, last = found[4:]
    data = x.asnumpy()
    assert (trained[0] == 0).any() and (last[0] == data).all()  # as the call is
    assert (trained[3] == data).all() and not trained[6].any()  # no statistics have moved
    assert (last[2] == 0).any() and (last[4] == data).all()


def test_what_is_exported_is_for_prediction(tmp_path):
    x, net = np.array([1.0]), _Modes()
    net.hybridize()
    for _ in range(2):
        _in_all_modes(net, x)
        net.export(str(tmp_path / "net"))
        again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"])
        assert again(x).tolist()[0] < 100


def test_backends_and_watchers_of_operators_are_asked():
    x, net, seen = np.array([0.0]), Paused(), []
    net.hybridize()
    for before in (True, False):  # a graph that is there is watched, too
        if before:
            net.register_op_hook(lambda name, op, array: seen.append(name))
        net(x)
        assert len(seen) >= 2
        seen.clear()
    net.hybridize(backend="nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        net(x)


def test_symbols_are_not_taken_for_arrays():
    net = Paused()
    net.hybridize()
    with pytest.raises(TypeError, match="exp"):
        net(mx.sym.var("data").as_np_ndarray())


class _Outer(gluon.HybridBlock):
    """``hybrid_forward`` around a block whose graph is found on arrays."""

    def __init__(self, own, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.inner = Net()
            if own:
                self.bias = self.params.get("bias", shape=(0,), allow_deferred_init=True)

    def hybrid_forward(self, F, x, bias=None):
        y = self.inner(x)[0]
        return y if bias is None else y + bias


def test_shapes_are_inferred_by_running():
    x = _array(2, 5)
    for net in (Net(), _Outer(False)):
        net.initialize()
        net.infer_shape(x)
        net.infer_type(x)
        assert sorted(p.shape for p in net.collect_params().values()) == [(3,), (3,), (3, 5)]
    net = _Outer(True)
    net.initialize()
    with pytest.raises(ValueError, match="shape cannot be inferred"):
        net(x)


@pytest.fixture
def watched():
    """A graph pass of a plugin that notes what it sees as a backend."""
    seen = []
    plugin = types.SimpleNamespace(
        API_VERSION=API_VERSION,
        mxcore_graph_passes=hookimpl(
            lambda: [GraphPass("watched", 950, lambda g: seen.append(g) or g if "options" in g.info else g)],
            specname="mxcore_graph_passes",
        ),
    )
    manager.load()
    manager.register(plugin, "watcher", "watcher-dist", "1.0")
    yield seen
    manager.unregister("watcher")


def test_optimize_for_notes_the_graph(watched):
    x, net, plain = _array(2, 5), Net(prefix="net_"), Net(prefix="net_")
    net.initialize()
    net.optimize_for(x, backend="watched")
    assert len(watched) == net.calls == 1
    plain.initialize()
    plain(x)
    for p, q in zip(plain.collect_params().values(), net.collect_params().values()):
        p.set_data(q.data())
    for a, b in zip(net(x), plain(x)):
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-6)
    assert len(watched) == net.calls == 1


@pytest.mark.parametrize("write", [lambda x: x.__setitem__(0, 1), lambda x: x.__iadd__(1)])
def test_writes_in_place_name_the_hybridization(write):
    class Writing(gluon.HybridBlock):
        def forward(self, x):
            write(x)
            return x

    block, x = Writing(), np.zeros(3)
    block(x)
    block.hybridize()
    with pytest.raises(
        RuntimeError, match=r"inplace .* noted as a graph, as those of a block after hybridize\(\)"
    ) as e:
        block(x)
    assert "record" not in str(e.value)
