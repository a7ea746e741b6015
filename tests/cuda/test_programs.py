"""What programs do around the computing on GPUs: files, pickles, loaders, stores; and what they do wrong."""

import itertools
import pickle

import numpy as np
import pytest

import mxcore as mx
from mxcore import gluon
from mxcore.base import MXNetError


# -- files -------------------------------------------------------------------------------------------------------------
def test_arrays_go_through_files_and_pickles(gpus, tmp_path):
    x = mx.nd.arange(6, ctx=gpus[1]).reshape((2, 3)) * 2
    with gpus[1]:
        loaded = mx.nd.load(_saved(tmp_path, [x]))[0]
    for back in (pickle.loads(pickle.dumps(x)), loaded):
        assert back.context == gpus[1] and back.asnumpy().tolist() == [[0, 2, 4], [6, 8, 10]]
    rows = mx.nd.sparse.row_sparse_array(([[1.0, 2.0]], [3]), shape=(5, 2), ctx=gpus[0])
    back = pickle.loads(pickle.dumps(rows))
    assert back.stype == "row_sparse" and back.context == gpus[0] and back.asnumpy()[3].tolist() == [1, 2]


def _saved(folder, arrays):
    mx.nd.save(str(folder / "x.params"), arrays)
    return str(folder / "x.params")


def test_parameters_and_trainers_are_kept_across_devices(gpus, tmp_path):
    def made(ctx):
        net = gluon.nn.Dense(3, in_units=4, prefix="net_")
        net.initialize(ctx=ctx)
        return net, gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

    def step(net, trainer, ctx):
        with mx.autograd.record():
            loss = (net(mx.nd.ones((2, 4), ctx=ctx)) ** 2).sum()
        loss.backward()
        trainer.step(2)
        return loss.asscalar()

    net, trainer = made(gpus[0])
    step(net, trainer, gpus[0])
    net.save_parameters(str(tmp_path / "p"))
    trainer.save_states(str(tmp_path / "s"))
    expected = [step(net, trainer, gpus[0]) for _ in range(3)]
    for ctx in (gpus[0], mx.cpu()):
        other, its = made(ctx)
        other.load_parameters(str(tmp_path / "p"), ctx=ctx)
        its.load_states(str(tmp_path / "s"))
        np.testing.assert_allclose([step(other, its, ctx) for _ in range(3)], expected, rtol=1e-3)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_what_goes_to_a_gpu(gpus, workers):
    data = np.arange(40, dtype="float32").reshape(10, 4)
    loader = gluon.data.DataLoader(
        gluon.data.ArrayDataset(data, np.arange(10)), 4, pin_memory=True, num_workers=workers, thread_pool=True
    )
    found = []
    for x, y in loader:
        assert x.context.device_type == "cpu_pinned"
        found.append((x.as_in_context(gpus[0]) + 1).asnumpy())
        assert y.as_in_context(gpus[1]).context == gpus[1]
    np.testing.assert_array_equal(np.concatenate(found), data + 1)


@pytest.mark.parametrize("kind", ["local", "device"])
def test_a_store_adds_up_what_devices_bring(gpus, kind):
    store = mx.kv.create(kind)
    store.init("w", mx.nd.zeros((3, 2), ctx=gpus[0]))
    store.push("w", [mx.nd.full((3, 2), 2, ctx=gpus[0]), mx.nd.full((3, 2), 3, ctx=gpus[1])])
    outs = [mx.nd.zeros((3, 2), ctx=ctx) for ctx in (*gpus, mx.cpu())]
    store.pull("w", out=outs)
    assert [out.context for out in outs] == [*gpus, mx.cpu()] and all((out.asnumpy() == 5).all() for out in outs)
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    for _ in range(2):
        store.pushpull("w", [mx.nd.ones((3, 2), ctx=ctx) for ctx in gpus], out=outs[:2])
    here = mx.kv.create(kind)
    here.init("w", mx.nd.full((3, 2), 5))
    here.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    out = mx.nd.zeros((3, 2))
    for _ in range(2):
        here.pushpull("w", [mx.nd.ones((3, 2)), mx.nd.ones((3, 2))], out=out)
    np.testing.assert_allclose(outs[1].asnumpy(), out.asnumpy(), rtol=1e-6)


# -- what is wrong -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: a + b,
        lambda a, b: mx.nd.dot(a, b),
        lambda a, b: mx.nd.concat(a, b, dim=0),
        lambda a, b: mx.nd.softmax_cross_entropy(a, b[0]),
        lambda a, b: mx.nd.elemwise_add(a, a, out=b),
    ],
)
def test_arrays_of_two_devices_do_not_meet(gpus, use):
    a, b = mx.nd.ones((3, 3), ctx=gpus[0]), mx.nd.ones((3, 3), ctx=gpus[1])
    for other in (b, mx.nd.ones((3, 3))):
        with pytest.raises(ValueError, match=r"gpu\(0\)") as caught:
            use(a, other)
        assert isinstance(caught.value, MXNetError)


def test_index_out_of_range_is_an_error_or_clipped_as_on_the_cpu(gpus):
    x = mx.nd.arange(4, ctx=gpus[0])
    for use in (lambda: x[4], lambda: x[-5], lambda: mx.nd.ones((2, 2), ctx=gpus[0])[0, 2]):
        with pytest.raises(IndexError):
            use()
    assert mx.nd.take(x, mx.nd.array([9, -9], ctx=gpus[0])).asnumpy().tolist() == [3, 0]
    w = mx.nd.array([[1.0], [2.0]], ctx=gpus[0])
    far = mx.nd.Embedding(mx.nd.array([7, 0], ctx=gpus[0]), w, input_dim=2, output_dim=1)
    near = mx.nd.Embedding(mx.nd.array([7, 0]), w.as_in_context(mx.cpu()), input_dim=2, output_dim=1)
    np.testing.assert_array_equal(far.asnumpy(), near.asnumpy())


@pytest.mark.parametrize(
    "use",
    [
        lambda F, x: F.relu(x),
        lambda F, x: F.softmax(x, axis=0),
        lambda F, x: F.sum(x),
        lambda F, x: F.broadcast_add(x, x),
        lambda F, x: F.FullyConnected(x, F.ones((2, 3), ctx=x.context), no_bias=True, num_hidden=2),
        lambda F, x: F.transpose(x),
        lambda F, x: F.concat(x, x, dim=0),
    ],
)
def test_empty_arrays_give_what_the_cpu_gives(gpus, use):
    there, here = (use(mx.nd, mx.nd.empty((0, 3), ctx=ctx)) for ctx in (gpus[0], mx.cpu()))
    assert there.shape == here.shape
    np.testing.assert_array_equal(there.asnumpy(), here.asnumpy())


@pytest.mark.parametrize("name", "relu sigmoid softmax sum max min argmax sort sqrt log sign round".split())
def test_nan_and_infinity_are_values(gpus, name):
    values = np.array([[np.nan, 1, -1], [np.inf, 0, -np.inf], [3, 2, 1]], "float32")
    there, here = (getattr(mx.nd, name)(mx.nd.array(values, ctx=ctx)).asnumpy() for ctx in (gpus[0], mx.cpu()))
    np.testing.assert_allclose(there, here, rtol=1e-5)


#: Of executor, two groups, two variables; a variable must live where something computes.
PLACES = [p for p in itertools.product([0, 1], repeat=5) if {*p[3:]} <= {*p[:3]}]


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize("places", PLACES, ids=lambda p: "".join(map(str, p)))
def test_groups_on_any_device(gpus, places, req):
    """Executor, two groups and two variables on either device: gradients get to where their arrays are."""
    default, first, second, x_at, v_at = (gpus[i] for i in places)
    x, v = mx.sym.Variable("x"), mx.sym.Variable("v")
    with mx.AttrScope(ctx_group="first"):
        y = mx.sym.exp(x) * v
    with mx.AttrScope(ctx_group="second"):
        z = mx.sym.FullyConnected(mx.sym.broadcast_mul(y, v), num_hidden=3, no_bias=True, name="fc")
    groups = {"first": first, "second": second}
    given = {"x": ((2, 4), x_at), "v": ((2, 4), v_at), "fc_weight": ((3, 4), second)}
    rs = np.random.RandomState(0)
    values = {n: rs.randn(*shape).astype("float32") for n, (shape, _) in given.items()}

    def gradients(at, groups, default):
        args = {n: mx.nd.array(a, ctx=at(n)) for n, a in values.items()}
        grads = {n: mx.nd.full(a.shape, 5, ctx=at(n)) for n, a in values.items()}
        ex = z.bind(default, args, args_grad=grads, grad_req=req, group2ctx=groups)
        found = []
        for _ in range(3):
            out = ex.forward(is_train=True)[0]
            ex.backward(mx.nd.array(np.arange(6.0).reshape(2, 3), ctx=out.context))
            found += [out.asnumpy(), *(grads[n].asnumpy() for n in given)]
        return found

    expected = gradients(lambda n: mx.cpu(), None, mx.cpu())
    for a, b in zip(gradients(lambda n: given[n][1], groups, default), expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("places", [*itertools.product([0, 1, None], repeat=3)], ids=str)
def test_a_monitor_sees_groups_on_any_device(gpus, places):
    """What it is told lives where it was computed, or came from: on either GPU or on the CPU (None)."""
    default, first, second = (mx.cpu() if i is None else gpus[i] for i in places)
    x = mx.sym.Variable("x")
    with mx.AttrScope(ctx_group="first"):
        y = mx.sym.exp(x, name="e")
    with mx.AttrScope(ctx_group="second"):
        z = mx.sym.elemwise_mul(mx.sym.tanh(y, name="t"), x, name="m")
    groups = {"first": first, "second": second}
    values = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
    args, grads = {"x": mx.nd.array(values, ctx=default)}, {"x": mx.nd.zeros((2, 3), ctx=default)}
    ex = z.bind(default, args, args_grad=grads, group2ctx=groups)
    seen = {}
    ex.set_monitor_callback(seen.__setitem__, monitor_all=True)
    out = ex.forward(is_train=True)[0]
    ex.backward(mx.nd.ones((2, 3), ctx=out.context))
    expected = {"x": values, "e_output": np.exp(values), "m_output": np.tanh(np.exp(values)) * values}
    where = {"x": default, "e_output": first, "t_output": second, "m_output": second, "e_backward_output": first}
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name].asnumpy(), value, rtol=1e-5, err_msg=name)
    for name, ctx in where.items():
        assert seen[name].context == ctx, name
    assert all(np.isfinite(a.asnumpy()).all() for a in seen.values())


def pulled_rows(a, other):
    """What a store gives of an array that it keeps whole."""
    store = mx.kv.create("device")
    store.init("a", mx.nd.ones_like(a.tostype("default")).tostype("row_sparse"))
    store.push("a", [a.tostype("row_sparse"), a.tostype("row_sparse").as_in_context(other)])
    out = mx.nd.zeros(a.shape, ctx=other).tostype("row_sparse")
    store.row_sparse_pull("a", out=out, row_ids=mx.nd.array([0, 3], ctx=other))
    return out.as_in_context(a.context)


#: Uses of a sparse array; the other context is there for some.
SPARSE_USES = {
    "asnumpy": lambda a, other: a,
    "copy": lambda a, other: a.copy(),
    "astype": lambda a, other: a.astype("float64"),
    "indices": lambda a, other: a.indices,
    "pickle": lambda a, other: pickle.loads(pickle.dumps(a)),
    "to the other and back": lambda a, other: a.as_in_context(other).as_in_context(a.context),
    "rows that a store holds": pulled_rows,
    "square": lambda a, other: mx.nd.square(a),
}


@pytest.mark.parametrize("use", SPARSE_USES.values(), ids=SPARSE_USES)
@pytest.mark.parametrize("stype", ["row_sparse", "csr"])
def test_sparse_arrays_of_the_gpu_that_is_not_the_active_one(gpus, stype, use):
    values = np.array([[1, 0, 2], [0, 0, 0], [3, 4, 0], [0, 5, 0]], "float32")
    expected = use(mx.nd.array(values).tostype(stype), mx.cpu(1)).asnumpy()
    for here, other in (gpus, gpus[::-1]):
        a = mx.nd.array(values, ctx=here).tostype(stype)
        other.device.activate(other.device_id)
        got = use(a, other)
        assert got.context == here
        other.device.activate(other.device_id)
        np.testing.assert_array_equal(got.asnumpy(), expected)


def sparse_between(x, m):
    with mx.AttrScope(ctx_group="a"):
        rows = mx.sym.cast_storage(x, "row_sparse")
    with mx.AttrScope(ctx_group="b"):
        squares = mx.sym.square(rows)
    with mx.AttrScope(ctx_group="a"):
        return [mx.sym.cast_storage(squares, "default") * m, squares]


def dynamic_between(x, m):
    with mx.AttrScope(ctx_group="a"):
        some = mx.sym.contrib.boolean_mask(x, mx.sym.sum(m, axis=1) > 0)
    with mx.AttrScope(ctx_group="b"):
        squares = mx.sym.square(some)
    with mx.AttrScope(ctx_group="a"):
        return [mx.sym.sum(squares, axis=0), squares]


def sparse_gradient(x, m):
    with mx.AttrScope(ctx_group="a"):
        rows = mx.sym.Embedding(mx.sym.argmax(m, axis=1), x, input_dim=3, output_dim=4, sparse_grad=True)
    with mx.AttrScope(ctx_group="b"):
        return [mx.sym.square(rows)]


def same_elsewhere(x, m):
    """Heads that are no operators any more once the graph is simplified."""
    with mx.AttrScope(ctx_group="a"):
        y = x * m
    with mx.AttrScope(ctx_group="b"):
        return [mx.sym.identity(y), mx.sym.BlockGrad(y), mx.sym.tanh(mx.sym.identity(m)), mx.sym.identity(x)]


@pytest.mark.parametrize("make", [sparse_between, dynamic_between, sparse_gradient, same_elsewhere])
def test_values_of_any_kind_between_groups(gpus, make):
    """Sparse ones, ones of unknown shape, and those that passes compute elsewhere get to where they are looked for."""
    net = mx.sym.Group(make(mx.sym.Variable("x"), mx.sym.Variable("m")))
    values = np.arange(12, dtype="float32").reshape(3, 4) - 5
    mask = np.array([[1, 0, 2, 0], [-1, 0, 0, 1], [3, 1, 0, 0]], "float32")

    def run(default, groups):
        args = {"x": mx.nd.array(values, ctx=default), "m": mx.nd.array(mask, ctx=default)}
        grad = mx.nd.zeros((3, 4), ctx=default)
        if make is sparse_gradient:
            grad = grad.tostype("row_sparse")
        ex = net.bind(default, args, args_grad={"x": grad}, group2ctx=groups)
        found = []
        for _ in range(2):
            outs = ex.forward(is_train=True)
            for o, (node, _) in zip(outs, net._heads):
                assert o.context == groups.get(node.attrs["__ctx_group__"], default)
            ex.backward([mx.nd.ones(o.shape, ctx=o.context) for o in outs])
            found += [a.asnumpy() for a in (*outs, grad)]
        return found

    expected = run(mx.cpu(), {})
    places = [mx.cpu(), *gpus]
    for default, a, b in itertools.product(places, repeat=3):
        for got, want in zip(run(default, {"a": a, "b": b}), expected):
            np.testing.assert_allclose(got, want, rtol=1e-5, err_msg=f"{default} {a} {b}")
