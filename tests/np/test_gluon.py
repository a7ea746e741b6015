"""Gluon over arrays of ``mx.np``: layers, losses, training, recurrent cells, loaders, files."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import autograd, gluon, np, npx
from mxcore.gluon import nn, rnn

pytestmark = pytest.mark.usefixtures("numpy_mode")


def _array(*shape):
    return mx.nd.random.uniform(-1, 1, shape=shape).as_np_ndarray()


LAYERS = {
    "dense": (lambda: nn.Dense(3, activation="tanh"), (2, 4)),
    "conv": (lambda: nn.Conv2D(3, 3), (2, 3, 6, 6)),
    "deconv": (lambda: nn.Conv2DTranspose(3, 3), (2, 3, 6, 6)),
    "batch_norm": (lambda: nn.BatchNorm(), (4, 3)),
    "layer_norm": (lambda: nn.LayerNorm(), (2, 5)),
    "instance_norm": (lambda: nn.InstanceNorm(), (2, 3, 4)),
    "group_norm": (lambda: nn.GroupNorm(3), (2, 3, 4)),
    "embedding": (lambda: nn.Embedding(4, 3), (2, 3)),
    "pool": (lambda: nn.MaxPool2D(), (2, 3, 6, 6)),
    "global_pool": (lambda: nn.GlobalAvgPool2D(), (2, 3, 6, 6)),
    "flatten": (lambda: nn.Flatten(), (2, 3, 4)),
    "prelu": (lambda: nn.PReLU(), (2, 3)),
    "gelu": (lambda: nn.GELU(), (2, 3)),
    "swish": (lambda: nn.Swish(), (2, 3)),
    "lambda": (lambda: nn.HybridLambda(lambda F, x: F.npx.relu(F.np.exp(x))), (2, 3)),
    "lstm": (lambda: rnn.LSTM(4, bidirectional=True), (5, 2, 3)),
    "gru": (lambda: rnn.GRU(4, layout="NTC"), (2, 5, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_what_they_are_over_nd(name):
    make, shape = LAYERS[name]
    layer, x = make(), _array(*shape)
    layer.initialize(mx.init.Uniform(0.5))
    eager = layer(x)
    layer.hybridize()
    compiled = layer(x)
    assert type(eager) is type(compiled) is np.ndarray
    onp.testing.assert_allclose(eager.asnumpy(), compiled.asnumpy(), rtol=1e-6, atol=1e-7)
    for p in layer.collect_params().values():
        assert type(p.data()) is np.ndarray
    if name == "lambda":
        return
    # The same layer over mx.nd, with the same weights.
    npx.reset_np()
    twin = make()
    twin.initialize()
    twin(x.as_nd_ndarray())
    for p, q in zip(layer.collect_params().values(), twin.collect_params().values()):
        q.set_data(p.data())
    onp.testing.assert_allclose(twin(x.as_nd_ndarray()).asnumpy(), eager.asnumpy(), rtol=1e-6, atol=1e-7)


LOSSES = {
    "l2": (gluon.loss.L2Loss, 2),
    "l1": (gluon.loss.L1Loss, 2),
    "bce": (gluon.loss.SigmoidBinaryCrossEntropyLoss, 2),
    "kl": (gluon.loss.KLDivLoss, 2),
    "huber": (gluon.loss.HuberLoss, 2),
    "hinge": (gluon.loss.HingeLoss, 2),
    "squared_hinge": (gluon.loss.SquaredHingeLoss, 2),
    "logistic": (gluon.loss.LogisticLoss, 2),
    "sdml": (gluon.loss.SDMLLoss, 2),
    "triplet": (gluon.loss.TripletLoss, 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    kind, n = LOSSES[name]
    args = [_array(4, 5) for _ in range(n)]
    got = kind()(*args)
    assert type(got) is np.ndarray and got.shape == (4,)
    wanted = kind()(*[a.as_nd_ndarray() for a in args])
    onp.testing.assert_array_equal(got.asnumpy(), wanted.asnumpy())


@pytest.mark.parametrize("value", [[1, 2], onp.ones(2), onp.array([1, 2], "int32")])
def test_constants_are_what_np_array_makes_of_them(value):
    constant, wanted = gluon.Constant("c", value), np.array(value)
    constant.initialize()
    for got in (constant.value, constant.data()):
        assert type(got) is np.ndarray and got.dtype == wanted.dtype
        onp.testing.assert_array_equal(got.asnumpy(), value)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nag", "rmsprop", "lamb", "signum"])
def test_training_is_that_of_nd(optimizer, hybrid):
    def losses(of_np):
        (npx.set_np if of_np else npx.reset_np)()
        mx.random.seed(3)
        onp.random.seed(3)
        net = nn.HybridSequential(prefix="net_")
        net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dense(3))
        net.initialize(mx.init.Xavier(), ctx=[mx.cpu(0), mx.cpu(1)])
        if hybrid:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01})
        data = onp.random.default_rng(0).normal(size=(8, 5)).astype("float32")
        label = (data.sum(1) > 0).astype("float32")
        found = []
        for _ in range(4):
            xs = gluon.utils.split_and_load(data, [mx.cpu(0), mx.cpu(1)])
            ys = gluon.utils.split_and_load(label, [mx.cpu(0), mx.cpu(1)])
            assert all((type(x) is np.ndarray) is of_np for x in (*xs, *ys))
            with autograd.record():
                out = [gluon.loss.SoftmaxCrossEntropyLoss()(net(x), y) for x, y in zip(xs, ys)]
            autograd.backward(out)
            trainer.step(8)
            found.append(sum(float(o.asnumpy().sum()) for o in out))
        return found

    assert losses(True) == losses(False)


@pytest.mark.parametrize(
    "init", ["zeros", "ones", "uniform", "normal", "xavier", "msraprelu", "orthogonal", "bilinear", "constant"]
)
def test_initializers(init):
    init = mx.init.Constant(3) if init == "constant" else init
    values = []
    for of_np in (True, False):
        (npx.set_np if of_np else npx.reset_np)()
        mx.random.seed(5)
        onp.random.seed(5)
        p = gluon.Parameter("w_weight", shape=(2, 2, 4, 4), init=init)
        p.initialize()
        assert (type(p.data()) is np.ndarray) is of_np
        values.append(p.data().asnumpy())
    onp.testing.assert_array_equal(*values)


class _Mine(mx.init.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.exp(np.zeros(arr.shape))


def test_initializers_of_users_get_arrays_of_np():
    p = gluon.Parameter("w_weight", shape=(2, 3), init=_Mine())
    p.initialize()
    onp.testing.assert_array_equal(p.data().asnumpy(), onp.ones((2, 3)))


def test_cells_unroll():
    cell = rnn.LSTMCell(4)
    cell.initialize()
    out, states = cell.unroll(3, _array(2, 3, 5), merge_outputs=True)
    assert type(out) is np.ndarray and out.shape == (2, 3, 4)
    assert [type(s) for s in states] == [np.ndarray] * 2
    assert all(type(s) is np.ndarray for s in cell.begin_state(batch_size=2))


@pytest.mark.parametrize(
    "more", [{}, {"num_workers": 2}, {"num_workers": 2, "thread_pool": True}], ids=["here", "processes", "threads"]
)
def test_loaders_give_arrays_of_the_thread_that_asks(more):
    data = gluon.data.ArrayDataset(onp.ones((5, 3), "float32"), onp.arange(5))
    loader = gluon.data.DataLoader(data, 2, **more)
    for x, y in loader:
        assert type(x) is type(y) is np.ndarray and y.dtype == onp.int64
    npx.reset_np()
    assert {type(x) for batch in loader for x in batch} == {mx.nd.NDArray}


def _which(x):
    assert npx.is_np_array() and npx.is_np_shape()
    return np.exp(mx.nd.array(x).as_np_ndarray())


@pytest.mark.parametrize("threads", [False, True])
def test_workers_know_the_mode(threads):
    data = gluon.data.SimpleDataset([onp.zeros(3, "float32")] * 4).transform(_which)
    (batch,) = gluon.data.DataLoader(data, 4, num_workers=1, thread_pool=threads)
    assert type(batch) is np.ndarray
    onp.testing.assert_array_equal(batch.asnumpy(), onp.ones((4, 3)))


def test_files(tmp_path):
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(4), nn.HybridLambda(lambda F, x: F.np.exp(x)), nn.Dense(2))
    net.initialize()
    x = _array(3, 5)
    net.hybridize()
    y = net(x).asnumpy()
    net.save_parameters(str(tmp_path / "net.params"))
    net.export(str(tmp_path / "net"))
    net.load_parameters(str(tmp_path / "net.params"))
    assert type(net[0].weight.data()) is np.ndarray
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    got = again(x)
    assert type(got) is np.ndarray
    onp.testing.assert_array_equal(got.asnumpy(), y)
    assert '"op": "_npi_exp"' in (tmp_path / "net-symbol.json").read_text()


def test_clip_global_norm():
    xs = [mx.nd.array([3.0]).as_np_ndarray(), mx.nd.array([4.0]).as_np_ndarray()]
    assert gluon.utils.clip_global_norm(xs, 1.0) == 5.0
    onp.testing.assert_allclose([float(x.asnumpy()[0]) for x in xs], [0.6, 0.8], rtol=1e-6)


class _Pairs(gluon.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return np.array([i, i + 1])


@pytest.mark.parametrize("threads", [True, False])
def test_workers_follow_the_dtypes_of_new_arrays(threads, numpy_mode):
    loader = gluon.data.DataLoader(_Pairs(), 4, num_workers=1, thread_pool=threads)
    for numpys, dtype in ((False, "float32"), (True, "int64"), (False, "float32")):
        npx.set_np(dtype=numpys)
        (batch,) = loader
        assert batch.dtype == dtype and batch.asnumpy().tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_functions_with_own_gradients_take_and_give_arrays_of_this_face():
    class Swish(autograd.Function):
        def forward(self, x):
            y = 1 / (1 + np.exp(-x))
            self.save_for_backward(x, y)
            return x * y

        def backward(self, dy):
            x, y = self.saved_tensors
            assert all(type(a) is np.ndarray for a in (dy, x, y))
            return dy * (y + x * y * (1 - y))

    x = np.array([-2.0, -0.5, 0.25, 3.0])
    x.attach_grad()
    with autograd.record():
        y = Swish()(x)
        z = (y * 3).sum()
    z.backward()
    assert type(y) is np.ndarray and type(x.grad) is np.ndarray
    host = x.asnumpy().astype("f8")
    s = 1 / (1 + onp.exp(-host))
    onp.testing.assert_allclose(x.grad.asnumpy(), 3 * (s + host * s * (1 - s)), rtol=1e-5)


class _Reads(gluon.HybridBlock):
    """Computes with a variable that is none of its parameters, beside one that is."""

    def __init__(self, get):
        super().__init__()
        self.dense, self.get = nn.Dense(2, in_units=2), get

    def forward(self, x):
        return np.dot(self.dense(x), self.get()) * self.get().sum()


def _as_attribute(block):
    p = gluon.Parameter("own", shape=(2, 2))
    p.initialize(mx.init.Constant(0.5))
    block.own = p
    return p.data, p.list_grad, p.set_data, lambda: p.initialize(mx.init.Constant(0.25), force_reinit=True)


def _of_another_block(block):
    other = nn.Dense(2, in_units=2, use_bias=False)
    other.initialize(mx.init.Constant(0.5))
    p = other.weight
    return p.data, p.list_grad, p.set_data, lambda: p.cast("float32") or p.reset_ctx(mx.cpu(0))


def _with_a_gradient(block):
    x = np.full((2, 2), 0.5)
    x.attach_grad()
    return lambda: x, lambda: [x.grad], lambda v: x.__setitem__(slice(None), v), lambda: None


def _frozen_at_first(block):
    """Another block's, which learns later."""
    data, grads, write, _ = _of_another_block(block)
    p = block.frozen = data.__self__
    p.grad_req = "null"
    return (
        data,
        lambda: grads() if p.grad_req == "write" else [np.zeros(1)],
        write,
        lambda: setattr(p, "grad_req", "write"),
    )


def _without_a_gradient(block):
    x = np.full((2, 2), 0.5)
    return lambda: x, lambda: [x], lambda v: x.__setitem__(slice(None), v), lambda: None


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "kind", [_frozen_at_first, _without_a_gradient, _as_attribute, _of_another_block, _with_a_gradient]
)
def test_variables_that_are_not_the_blocks_are_read_anew_and_get_gradients(kind, nested):
    found = []
    for hybrid in (False, True):
        block = _Reads(lambda: get())
        get, grads, write, replace = kind(block)
        block.initialize(mx.init.Constant(0.1))
        net = block
        if nested:
            net = nn.HybridSequential()
            net.add(block)
        if hybrid:
            net.hybridize()
        rows = []
        for step in range(6):
            x = np.array([[1.0, 2], [3, step]])
            with autograd.record():
                y = (net(x) ** 2).sum()
            y.backward()
            rows.append([y.item(), grads()[0].asnumpy(), block.dense.weight.grad().asnumpy(), net(x).asnumpy()])
            if step == 2:
                replace()
            else:
                write(get() * 1.5)
        found.append(rows)
    for eager, hybridised in zip(*found):
        for a, b in zip(eager, hybridised):
            onp.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_graph_that_reads_another_blocks_parameter_is_exported_with_it(tmp_path):
    other = nn.Dense(2, in_units=2, use_bias=False)
    other.initialize(mx.init.Constant(0.5))
    net = _Reads(other.weight.data)
    net.initialize()
    net.hybridize()
    x = np.array([[1.0, 2]])
    wanted = net(x)
    net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"))
    onp.testing.assert_allclose(again(x).asnumpy(), wanted.asnumpy(), rtol=1e-6)


def test_what_the_graph_around_a_block_has_computed_is_to_be_an_argument():
    scale = np.ones(2)
    scale.attach_grad()
    net = _Reads(lambda: around)
    net.initialize()
    net.hybridize()
    with autograd.record():
        around = np.stack([scale * 2, scale])
        with pytest.raises(NotImplementedError, match="neither an argument nor a variable"):
            net(np.ones((1, 2)))
