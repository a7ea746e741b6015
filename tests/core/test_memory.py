"""Whose memory a result lies in: its own. Overlaps do not show; read-only memory stays as it is."""

import itertools

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd
from mxcore._core import dispatch, tables, transfer
from mxcore._core.array import Like
from mxcore.plugin import Device, op


class Plain:
    """An array that says nothing about its memory: no `base`, no `flags`."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        if name in ("base", "flags") or name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.value, name)
        return (
            (lambda *a, **kw: wrap(found(*map(plain, a), **kw))) if callable(found) and name != "dtype" else wrap(found)
        )

    def __getitem__(self, key):
        return wrap(self.value[plain(key)])

    def __setitem__(self, key, value):
        self.value[plain(key)] = plain(value)


def wrap(v):
    return Plain(v) if isinstance(v, np.ndarray) else v


def plain(v):
    if isinstance(v, Plain):
        return v.value
    return type(v)(map(plain, v)) if isinstance(v, (list, tuple)) else v


for _name in "add sub mul truediv".split():
    setattr(Plain, f"__{_name}__", lambda a, b, n=f"__{_name}__": wrap(getattr(a.value, n)(plain(b))))


class Functions:
    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found
        return lambda *a, **kw: wrap(found(*map(plain, a), **kw))


class PlainDevice(Device):
    """A device whose arrays do not tell what they lie in; only the device does."""

    type, type_id, xp = "plain", 777, Functions()

    def count(self):
        return 1

    def to_host(self, a):
        return np.array(a.value)

    def from_host(self, a, index):
        return Plain(np.array(a))

    def copy(self, a, dst):
        np.copyto(dst.value, plain(a), casting="unsafe")

    def shares(self, a, b):
        return np.may_share_memory(a.value, b.value)


@op("test_itself", inputs="data")
def itself(k, p, data):
    """The very array it was given."""
    return data


@op("test_part", inputs="data")
def part(k, p, data):
    """Views of the array it was given, through a reshape and back."""
    return data.reshape((-1,)).reshape(data.shape)


@op("test_two", inputs="data", outputs="a b")
def two(k, p, data):
    """A view, and an array of its own."""
    return data.reshape(data.shape), data + 0


@op("test_turned", inputs="data")
def turned(k, p, data):
    """The sum of the data and one, axes in the opposite order: a part of an array of its own."""
    return (data + 1).T


@turned.shape
def turned_shape(p, ins, outs):
    return ins, [ins[0][::-1]]


@pytest.fixture
def device(plug):
    plug("plain_device", mxcore_devices=[PlainDevice()], mxcore_ops=[itself, part, two])
    return mx.Context("plain")


@pytest.mark.parametrize("ctx", ["plain", "cpu"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: nd.test_itself(x),
        lambda x: nd.test_part(x),
        lambda x: nd.test_two(x)[0],
        lambda x: nd.test_two(x)[1],
        lambda x: nd.reshape(x, shape=(3, 2)),
        lambda x: nd.transpose(x),
        lambda x: nd.slice_axis(x, axis=0, begin=0, end=1),
        lambda x: nd.expand_dims(x, axis=0),
        lambda x: nd.Flatten(x),
        lambda x: nd.identity(x),
        lambda x: nd.BlockGrad(x),
        lambda x: nd.Cast(x, dtype="float32"),
        lambda x: nd.squeeze(x),
        lambda x: nd.SliceChannel(x, num_outputs=3)[0],
        lambda x: nd.broadcast_like(x, x),
        lambda x: nd.slice(x, begin=(0, 0), end=(2, 3)),
        lambda x: nd.swapaxes(x, 0, 1),
    ],
)
def test_a_result_has_memory_of_its_own(device, ctx, f):
    x = nd.array([[1, 2, 3], [4, 5, 6]], ctx=mx.Context(ctx))
    y = f(x)
    y[:] = 7
    assert x.asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]] and (y.asnumpy() == 7).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: nd.linalg.extractdiag(x),
        lambda x: nd.linalg.extracttrian(x, lower=False),
        lambda x: nd.linalg.syevd(x)[0],
        lambda x: nd.test_turned(x),
        lambda x: nd.test_turned(x, out=nd.zeros((4, 4, 2))),
    ],
)
def test_a_result_shows_what_is_written_to_its_views(plug, f):
    plug(mxcore_ops=[turned])
    y = f(nd.random.uniform(shape=(2, 4, 4)))
    y.reshape((-1,))[:] = 7
    assert (y.asnumpy() == 7).all()


def test_views_share_where_they_should(device):
    for ctx in (mx.Context("plain"), mx.cpu()):
        x = nd.array([[1, 2, 3], [4, 5, 6]], ctx=ctx)
        x.reshape((3, 2))[:] = 7
        assert (x.asnumpy() == 7).all()
        x[1][:] = 3
        assert x.asnumpy().tolist() == [[7] * 3, [3] * 3]


# -- arrays over one buffer
# ---------------------------------------------------------------------------------------------
def two_over_one(n, offset, step=1, seed=0):
    """Two arrays over one NumPy buffer, `offset` elements apart, and what each holds; NumPy is told nothing."""
    values = np.random.RandomState(seed).uniform(1, 2, (n + offset) * step).astype(np.float32)
    buffer = bytearray(values.tobytes())
    a = np.frombuffer(buffer, np.float32)[: n * step]
    b = np.frombuffer(memoryview(buffer)[4 * offset :], np.float32)[: n * step]
    return nd.from_numpy(a), nd.from_numpy(b), a.copy(), b.copy()


@pytest.mark.parametrize("n, offset", [*itertools.product((64, 1 << 16), (0, 1, 7))])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    "name, kwargs",
    [
        ("exp", {}),
        ("softmax", {}),
        ("log_softmax", {}),
        ("relu", {}),
        ("cumsum", {}),
        ("reverse", {"axis": 0}),
        ("sort", {}),
        ("_plus_scalar", {"scalar": 3}),
        ("sigmoid", {}),
        ("LayerNorm", {}),
        ("elemwise_add", {}),
        ("broadcast_mul", {}),
        ("elemwise_sub", {}),
        ("_rdiv_scalar", {"scalar": 3}),
        ("Concat", {"dim": 0}),
        ("add_n", {}),
        ("where", {}),
    ],
)
def test_out_that_overlaps_an_input(n, offset, swap, name, kwargs):
    def run(x, y, out):
        if name in ("Concat",):
            h = x.shape[0] // 2
            return nd.concat(x[h:], x[:h], dim=0, out=out)
        if name == "LayerNorm":
            return nd.LayerNorm(x, nd.array(gamma), nd.array(gamma), out=out)
        if name in ("elemwise_add", "broadcast_mul", "elemwise_sub", "add_n"):
            return getattr(nd, name)(x, y, out=out)
        if name == "where":
            return nd.where(y > 1.5, x, y, out=out)
        return getattr(nd, name)(x, out=out, **kwargs)

    gamma = np.linspace(0.5, 1.5, n).astype(np.float32)
    a, b, va, vb = two_over_one(n, offset)
    if swap:
        a, b, va, vb = b, a, vb, va
    other = nd.array(np.random.RandomState(5).uniform(1, 2, n))
    wanted = nd.empty((n,))
    run(nd.array(va), other, wanted)
    run(a, other, b)
    np.testing.assert_array_equal(b.asnumpy(), wanted.asnumpy())


@pytest.mark.parametrize("offset", [0, 1, 5])
@pytest.mark.parametrize(
    "name, kwargs, which",
    [
        ("sgd_update", {"lr": 0.5}, (1, 0)),
        ("sgd_mom_update", {"lr": 0.5, "momentum": 0.9}, (1, 0)),
        ("sgd_mom_update", {"lr": 0.5, "momentum": 0.9}, (1, 2)),
        ("adam_update", {"lr": 0.5}, (1, 3)),
        ("rmsprop_update", {"lr": 0.5}, (1, 2)),
        ("signum_update", {"lr": 0.5, "momentum": 0.9}, (2, 1)),
        ("ftrl_update", {"lr": 0.5}, (1, 2)),
        ("nag_mom_update", {"lr": 0.5, "momentum": 0.9}, (1, 2)),
    ],
)
@pytest.mark.parametrize("through", ["operator", "bound"])
def test_an_update_whose_arrays_overlap(name, kwargs, which, offset, through):
    """What lies in memory that an update moves is read as it was before."""
    from mxcore.optimizer._bound import update

    count = {"sgd_update": 2, "adam_update": 4, "ftrl_update": 4}.get(name, 3)
    n = 1000
    first, second, v1, v2 = two_over_one(n, offset)
    arrays = [nd.array(np.random.RandomState(i).uniform(1, 2, n)) for i in range(count)]
    arrays[which[0]], arrays[which[1]] = first, second
    apart = [a.copy() for a in arrays]
    getattr(nd, name)(*apart, out=apart[0], **kwargs)
    if through == "bound":
        update(name, arrays, kwargs)
    else:
        getattr(nd, name)(*arrays, out=arrays[0], **kwargs)
    for i in range(count):
        if i != 1:  # the gradient, which lies in the memory of one of those that are written
            np.testing.assert_array_equal(arrays[i].asnumpy(), apart[i].asnumpy())


@pytest.mark.parametrize("key", [slice(1, None), slice(None, -1), slice(None, None, 2)])
def test_views_of_one_storage_as_out(key):
    x = nd.array(np.arange(10) / 10)
    n = len(range(10)[key])
    for view, other in ((x[key], x[0:n]), (x[0:n], x[key])):
        wanted = np.exp(other.asnumpy())
        nd.exp(other, out=view)
        np.testing.assert_allclose(view.asnumpy(), wanted, rtol=1e-6)


def calls():
    """Every way of calling an operator that writes more than one array, once: (operator, sample)."""
    from mxcore.testing.case import cases

    for known in {id(o): o for o in map(tables.ops.get, tables.ops.names())}.values():
        if not known.random:
            for case in cases(known, mx.cpu()):
                if len(case.sig.outputs) > 1 or len(case.sig.mutates) > 1:
                    yield case


def called(case, arrays, out=None):
    found = dispatch.invoke(case.op, arrays, case.p, out)
    return [y.asnumpy() for y in (found if isinstance(found, (list, tuple)) else [found])]


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0, 1])
def test_outputs_that_overlap_one_another(shift):
    """They hold what they would if each were written when all are computed, in their order."""
    tried = 0
    for case in calls():
        values = called(case, case.arrays())
        alike = [
            (i, j)
            for i, a in enumerate(values)
            for j, b in enumerate(values)
            if i != j and a.dtype == b.dtype and a.size and b.size
        ]
        for i, j in alike[:4] if case.op.storage_rule is None else ():
            buffer = np.zeros(max(values[i].size, values[j].size) + shift, values[i].dtype)
            wanted = buffer.copy()
            outs = [nd.empty(v.shape, dtype=v.dtype) for v in values]
            for k in sorted((i, j)):
                first = shift if k == j else 0
                part = slice(first, first + values[k].size)
                outs[k] = transfer.wrap(buffer[part].reshape(values[k].shape), mx.cpu(), nd.NDArray)
                wanted[part] = values[k].ravel()
            called(case, case.arrays(), outs)
            np.testing.assert_array_equal(buffer, wanted, str((case, i, j)))
            tried += 1
    assert tried > 300


@pytest.mark.slow
def test_states_that_overlap_one_another():
    """An operator that moves two inputs in one memory computes as if they were apart, and writes the later last."""
    tried = 0
    for case in calls():
        for i, j in itertools.combinations(case.sig.mutates, 2):
            if case.host[i].shape != case.host[j].shape or case.host[i].dtype != case.host[j].dtype:
                continue
            host = [np.array(a) for a in case.host]
            host[j] = host[i].copy()
            apart, together = case.arrays(host), case.arrays(host)
            together[j] = transfer.wrap(together[i]._data, mx.cpu(), nd.NDArray)
            for a, b in zip(called(case, apart), called(case, together)):
                np.testing.assert_array_equal(a, b, str((case, i, j)))
            np.testing.assert_array_equal(together[j].asnumpy(), apart[j].asnumpy(), str((case, i, j)))
            tried += 1
    assert tried > 100


# -- read-only memory
# -----------------------------------------------------------------------------------------------------
def read_only(*shape):
    return nd.from_numpy(np.frombuffer(np.ones(shape, np.float32).tobytes(), np.float32).reshape(shape))


def _set(x, key, value):
    x[key] = value


def _executor():
    e = (mx.sym.Variable("x") * 2).bind(mx.cpu(), {"x": nd.ones((4,))}, {"x": read_only(4)})
    e.forward(is_train=True)


def _hybrid():
    net = mx.gluon.nn.BatchNorm(in_channels=3)
    net.initialize()
    net.running_mean.data()._data.flags.writeable = False
    net.hybridize()
    with mx.autograd.record():
        net(nd.ones((2, 3)))


def _batch_norm():
    """An executor with statistics in read-only memory."""
    net = mx.sym.BatchNorm(mx.sym.Variable("x"), name="bn")
    given = {"x": nd.ones((2, 3)), "bn_gamma": nd.ones(3), "bn_beta": nd.ones(3)}
    return net.bind(mx.cpu(), given, aux_states=[read_only(3), nd.ones(3)])


def _store():
    kv = mx.kv.create("local")
    kv.init("a", nd.ones((4,)))
    kv.pull("a", out=read_only(4))


WRITES = {
    "out": (lambda: nd.exp(nd.ones((4,)), out=read_only(4)), "operator exp with out="),
    "out of a kernel": (lambda: nd.softmax(nd.ones((4, 4)), out=read_only(4, 4)), "operator softmax with out="),
    "several outputs": (
        lambda: nd.SliceChannel(nd.ones((2, 2)), num_outputs=2, out=[nd.ones((2, 1)), read_only(2, 1)]),
        "operator SliceChannel with out=",
    ),
    "weight": (
        lambda: nd.sgd_update(read_only(4), nd.ones((4,)), lr=0.1, out=read_only(4)),
        "operator sgd_update with out=",
    ),
    "state": (
        lambda: nd.sgd_mom_update(nd.ones((4,)), nd.ones((4,)), read_only(4), lr=0.1, out=nd.ones((4,))),
        "operator sgd_mom_update updates its input 'mom'",
    ),
    "optimizer": (
        lambda: mx.optimizer.get_updater(mx.optimizer.Adam())(0, nd.ones((4,)), read_only(4)),
        "Adam, parameter 0: its weight",
    ),
    "draws": (lambda: nd.random.uniform(shape=(4,), out=read_only(4)), "operator _random_uniform with out="),
    "all": (lambda: _set(read_only(4), slice(None), 1), "writing to an array"),
    "part": (lambda: _set(read_only(4), slice(1, 2), nd.ones((1,))), "writing to an array"),
    "index": (lambda: _set(read_only(4), nd.array([0, 1]), 3), r"x\[key\] = value"),
    "host": (lambda: _set(read_only(4), slice(None), [1, 2, 3, 4]), "writing to an array"),
    "in place": (lambda: read_only(4).__iadd__(1), "_plus_scalar"),
    "in place by an array": (lambda: read_only(4).__iadd__(nd.ones((4,))), "operator elemwise_add with out="),
    "copyto": (lambda: nd.ones((4,)).copyto(read_only(4)), "writing to an array"),
    "pull": (_store, "kvstore: pull of key 'a'"),
    "marked": (lambda: mx.autograd.mark_variables([nd.ones((4,))], [read_only(4)]), "a variable's gradient"),
    "bound gradient": (_executor, "bind: the gradient of 'x'"),
    "hybridised statistics": (_hybrid, "training moves the auxiliary state '.*running_mean'"),
    "bound statistics": (
        lambda: _batch_norm().forward(is_train=True),
        "training moves the auxiliary state 'bn_moving_mean'",
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_to_read_only_memory_says_who_wanted_to(name):
    write, text = WRITES[name]
    with pytest.raises(ValueError, match=text + ": the array's memory is read-only.* copy") as e:
        write()
        nd.waitall()
    assert isinstance(e.value, mx.MXNetError)


@pytest.mark.parametrize("name", ["adadelta", "adamax", "nadam", "sgd", "test"])
@pytest.mark.parametrize("frozen", ["weight", "state"])
def test_an_optimizer_that_cannot_write_everything_writes_nothing(name, frozen):
    update = mx.optimizer.get_updater(mx.optimizer.create(name, **({"momentum": 0.9} if name == "sgd" else {})))
    grads, weights = [nd.ones((4,)) for _ in range(2)], [nd.ones((4,)) for _ in range(2)]
    update([0, 1], grads, weights)
    counted = update.optimizer.num_update
    arrays = [
        *weights,
        *(
            a
            for i in range(2)
            for a in (update.states[i] if isinstance(update.states[i], tuple) else [update.states[i]])
        ),
    ]
    before = [a.asnumpy() for a in arrays]
    arrays[1 if frozen == "weight" else -1]._data.flags.writeable = False
    with pytest.raises(mx.MXNetError, match=f"parameter 1: its {frozen}: the array's memory is read-only"):
        update([0, 1], grads, weights)
    for a, b in zip(arrays, before):
        np.testing.assert_array_equal(a.asnumpy(), b)
    assert update.optimizer.num_update == counted


@pytest.mark.parametrize("verb", ["pull", "pushpull", "broadcast"])
def test_a_store_that_cannot_fill_everything_fills_nothing(verb):
    kv, out = mx.kv.create("local"), nd.zeros((4,))
    new = verb == "broadcast"
    if not new:
        kv.init("a", nd.ones((4,)))
    with pytest.raises(mx.MXNetError, match=f"kvstore: {verb} of key 'a': the array's memory is read-only"):
        getattr(kv, verb)("a", *([nd.full((4,), 5)] if verb != "pull" else []), out=[out, read_only(4)])
    assert not out.asnumpy().any()
    kv.broadcast("a", nd.ones((4,)), out) if new else kv.pull("a", out=out)
    assert out.asnumpy().tolist() == [1] * 4


def test_clipping_that_cannot_scale_everything_scales_nothing():
    x = nd.full((4,), 9)
    with pytest.raises(mx.MXNetError, match="clip_global_norm: array 1: the array's memory is read-only"):
        mx.gluon.utils.clip_global_norm([x, read_only(4)], 1.0)
    assert x.asnumpy().tolist() == [9] * 4


def test_read_only_memory_is_read():
    x = read_only(2, 3)
    assert (
        (x + x).asnumpy().tolist() == [[2] * 3] * 2
        and nd.softmax(x).shape == (2, 3)
        and nd.dot(x, x, transpose_b=True).asnumpy()[0, 0] == 3
    )
    e = _batch_norm()
    e.forward(is_train=False)  # what is only looked at may be read-only
    assert e.outputs[0].shape == (2, 3)


def test_what_the_default_device_says_of_memory():
    device, x = Device(), np.zeros(8)
    apart = np.frombuffer(bytearray(64))
    assert (
        device.shares(x, x)
        and device.shares(x[1:], x)
        and device.shares(x[:4], x[3:])
        and not device.shares(x[:4], x[4:])
        and not device.shares(x, apart)
    )
    buffer = bytearray(64)
    assert device.shares(np.frombuffer(buffer), np.frombuffer(buffer))
    frozen = np.frombuffer(bytes(64))
    assert (
        device.writable(x)
        and not device.writable(frozen)
        and device.writable(Plain(x))
        and device.writable(Like(nd.ones((2,))))
    )


def test_a_copy_within_one_memory_takes_what_was_there_before():
    class Simple(PlainDevice):
        copy = Device.copy

        def shares(self, a, b):
            return np.may_share_memory(a, b)

    w = np.arange(10)
    Simple().copy(w[:5], w[::2])
    assert w.tolist() == [0, 1, 1, 3, 2, 5, 3, 7, 4, 9]
