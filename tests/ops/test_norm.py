"""Normalizations: when moving statistics move, what stays fixed, shapes and dtypes in both directions."""

import numpy as np
import pytest

import mxcore as mx

from .golden.corners import wave


def batch_norm_inputs():
    x, gamma, beta = (mx.nd.array(a) for a in (wave((4, 3, 2), 1), wave((3,), 2), wave((3,), 3)))
    for a in (x, gamma, beta):
        a.attach_grad()
    return x, gamma, beta, mx.nd.zeros((3,)), mx.nd.ones((3,))


def test_statistics_move_in_backward():
    x, gamma, beta, mean, var = batch_norm_inputs()
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, gamma, beta, mean, var, momentum=0.75)
    assert not mean.asnumpy().any() and (var.asnumpy() == 1).all()
    y.backward()
    batch = x.asnumpy()
    np.testing.assert_allclose(mean.asnumpy(), 0.25 * batch.mean((0, 2)), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(var.asnumpy(), 0.75 + 0.25 * batch.var((0, 2)), rtol=1e-5)


def test_statistics_shared_by_two_calls_move_twice():
    x, gamma, beta, mean, var = batch_norm_inputs()
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, gamma, beta, mean, var, momentum=0.5) + mx.nd.BatchNorm(
            x, gamma, beta, mean, var, momentum=0.5
        )
    y.backward()  # without a warning that an input was rewritten
    np.testing.assert_allclose(mean.asnumpy(), 0.75 * x.asnumpy().mean((0, 2)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("train", "params"), [(False, {}), (True, {"use_global_stats": True})])
def test_statistics_stay(train, params):
    x, gamma, beta, mean, var = batch_norm_inputs()
    with mx.autograd.record(train_mode=train):
        y = mx.nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False, eps=0.0, **params)
    mx.autograd.backward([y], train_mode=train)
    assert not mean.asnumpy().any() and (var.asnumpy() == 1).all()
    column = (1, 3, 1)
    np.testing.assert_allclose(
        y.asnumpy(),
        x.asnumpy() * gamma.asnumpy().reshape(column) + beta.asnumpy().reshape(column),
        rtol=1e-5,
        atol=1e-6,
    )
    np.testing.assert_allclose(x.grad.asnumpy(), np.broadcast_to(gamma.asnumpy().reshape(column), x.shape), rtol=1e-5)


def test_fixed_gamma():
    x, gamma, beta, mean, var = batch_norm_inputs()
    before = gamma.asnumpy()
    gamma.grad[:] = 7
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, gamma, beta, mean, var)
    y.backward()
    np.testing.assert_allclose(y.asnumpy().std((0, 2)), 1, rtol=5e-3)
    assert (gamma.asnumpy() == before).all() and not gamma.grad.asnumpy().any()


def test_statistics_move_in_a_graph_too():
    s = mx.sym.BatchNorm(mx.sym.var("x"), name="bn", momentum=0.5)
    assert s.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert s.list_outputs() == ["bn_output"]
    ex = s.simple_bind(mx.cpu(), x=(4, 3, 2))
    ex.arg_dict["x"][:] = wave((4, 3, 2), 1)
    ex.aux_dict["bn_moving_mean"][:] = 0
    ex.forward(is_train=True)
    mx.nd.waitall()
    assert not ex.aux_dict["bn_moving_mean"].asnumpy().any()
    ex.backward([mx.nd.ones((4, 3, 2))])
    np.testing.assert_allclose(
        ex.aux_dict["bn_moving_mean"].asnumpy(), 0.5 * wave((4, 3, 2), 1).mean((0, 2)), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("axis", [1, -1, 0])
def test_batch_norm_shapes(shapes, axis):
    data, c = (4, 3, 2), (4, 3, 2)[axis]
    expected = ([data, *[(c,)] * 4], [data, (c,), (c,)])
    assert shapes("BatchNorm", [data, *[None] * 4], axis=axis) == expected
    assert shapes("BatchNorm", [None] * 5, [data, None, None], axis=axis) == expected
    with pytest.raises(ValueError, match="axis 3 is out of range"):
        shapes("BatchNorm", [data, *[None] * 4], axis=3)


def test_half_precision_keeps_single_statistics(dtypes):
    assert dtypes("BatchNorm", ["float16", *[None] * 4]) == (
        ["float16", *["float32"] * 4],
        ["float16", "float32", "float32"],
    )
    assert dtypes("BatchNorm", [None] * 5, ["float64", None, None])[0] == ["float64"] * 5
    x = mx.nd.ones((4, 3), dtype="float16")
    assert mx.nd.BatchNorm(x, *[mx.nd.ones((3,))] * 4).dtype == np.float16
    with pytest.raises(TypeError, match="operator BatchNorm: gamma is float16 where float32 is expected"):
        mx.nd.BatchNorm(x, *[mx.nd.ones((3,), dtype="float16")] * 4)


def test_visible_outputs():
    x, gamma, beta, mean, var = batch_norm_inputs()
    y, m, inv = mx.nd.BatchNorm(x, gamma, beta, mean, var + 1, output_mean_var=True, eps=2.0)
    assert m.asnumpy().tolist() == [0, 0, 0] and inv.asnumpy().tolist() == [0.5] * 3
    names = {"LayerNorm": ["n_output", "n_mean", "n_std"], "GroupNorm": ["n_output", "n_mean", "n_std"]}
    for name, outputs in names.items():
        op = getattr(mx.sym, name)
        assert op(mx.sym.var("x"), name="n").list_outputs() == outputs[:1]
        assert op(mx.sym.var("x"), name="n", output_mean_var=True).list_outputs() == outputs


def test_shapes_within_samples(shapes):
    assert shapes("LayerNorm", [None] * 3, [(2, 4, 5), None, None], axis=1) == (
        [(2, 4, 5), (4,), (4,)],
        [(2, 4, 5), (2, 1, 5), (2, 1, 5)],
    )
    assert shapes("GroupNorm", [(2, 4, 5), None, None], num_groups=2) == (
        [(2, 4, 5), (2,), (2,)],
        [(2, 4, 5), (2, 2), (2, 2)],
    )
    assert shapes("InstanceNorm", [(-1, 4, 5), None, None])[0] == [(-1, 4, 5), (4,), (4,)]
    with pytest.raises(ValueError, match="4 channels are no multiple of num_groups=3"):
        shapes("GroupNorm", [(2, 4, 5), None, None], num_groups=3)
    with pytest.raises(ValueError, match="must have batch, channels and spatial dimensions"):
        shapes("InstanceNorm", [(2, 4), None, None])


@pytest.mark.parametrize(
    ("name", "axes", "view", "params"),
    [
        ("LayerNorm", (2,), (3, 4, 5), {}),
        ("GroupNorm", (2,), (3, 2, 10), {"num_groups": 2}),
        ("InstanceNorm", (2,), (3, 4, 5), {}),
    ],
)
def test_standardized(name, axes, view, params):
    x = wave((3, 4, 5), 1, 3.0) + 100
    n = {"LayerNorm": 5, "GroupNorm": 2, "InstanceNorm": 4}[name]
    y = getattr(mx.nd, name)(mx.nd.array(x), mx.nd.ones((n,)), mx.nd.zeros((n,)), **params).asnumpy().reshape(view)
    np.testing.assert_allclose(y.mean(axes), 0, atol=1e-5)
    np.testing.assert_allclose(y.std(axes), 1, rtol=1e-3)


def test_zero_size():
    empty = mx.nd.empty((0, 3, 2))
    with mx.autograd.record():
        y = mx.nd.BatchNorm(empty, *[mx.nd.ones((3,))] * 4)
    assert y.shape == (0, 3, 2)
    assert mx.nd.LayerNorm(mx.nd.empty((2, 0)), mx.nd.empty((0,)), mx.nd.empty((0,))).shape == (2, 0)


def test_lengths():
    x = wave((2, 3, 4), 1)
    for mode, axes in (("instance", (1, 2)), ("channel", 1), ("spatial", 2)):
        y = mx.nd.L2Normalization(mx.nd.array(x), mode=mode).asnumpy()
        np.testing.assert_allclose(np.square(y).sum(axes), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="mode spatial needs data of at least 3 dimensions"):
        mx.nd.L2Normalization(mx.nd.ones((2, 3)), mode="spatial")
    with pytest.raises(ValueError, match="nsize must be odd"):
        mx.nd.LRN(mx.nd.ones((1, 2, 3, 3)), nsize=2)


# -- several contexts --------------------------------------------------------------------------------------------------

CONTEXTS = (0, 1)


def parts(sizes=(4, 4)):
    """(data, head gradient) of each context."""
    return [(wave((n, 3, 2), i + 1, 2.0) + i, wave((n, 3, 2), i + 5)) for i, n in enumerate(sizes)]


def together(key, sizes=(4, 4), call=None, **params):
    """Outputs, gradients of data, gamma and beta, and moving statistics, of each context."""
    arrays, outs = [], []
    for i, (x, _) in zip(CONTEXTS, parts(sizes)):
        with mx.cpu(i):
            found = [mx.nd.array(a) for a in (x, [0.5, 2, 1], [0.1, 0.2, 0.3], [0, 0, 0], [1, 1, 1])]
        for a in found[:3]:
            a.attach_grad()
        arrays.append(found)
    with mx.autograd.record():
        for found in arrays:
            outs.append(mx.nd.contrib.SyncBatchNorm(*found, key=key, ndev=2, fix_gamma=False, momentum=0.75, **params))
    for y, i, (_, dy) in zip(outs, CONTEXTS, parts(sizes)):
        y.backward(mx.nd.array(dy, ctx=mx.cpu(i)))
    return [
        [y.asnumpy(), *[a.grad.asnumpy() for a in found[:3]], *[a.asnumpy() for a in found[3:]]]
        for y, found in zip(outs, arrays)
    ]


def whole(sizes):
    """The same from one BatchNorm over all batches."""
    x, gamma, beta, mean, var = (
        mx.nd.array(a)
        for a in (np.concatenate([x for x, _ in parts(sizes)]), [0.5, 2, 1], [0.1, 0.2, 0.3], [0, 0, 0], [1, 1, 1])
    )
    for a in (x, gamma, beta):
        a.attach_grad()
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, gamma, beta, mean, var, fix_gamma=False, momentum=0.75)
    y.backward(mx.nd.array(np.concatenate([dy for _, dy in parts(sizes)])))
    return [y.asnumpy(), x.grad.asnumpy(), gamma.grad.asnumpy(), beta.grad.asnumpy(), mean.asnumpy(), var.asnumpy()]


@pytest.mark.parametrize("sizes", [(4, 4), (1, 6)])
def test_contexts_normalize_together(sizes):
    first, second = together(f"together {sizes}", sizes)
    y, dx, d_gamma, d_beta, mean, var = whole(sizes)
    for i, expected in ((0, y), (1, dx)):
        np.testing.assert_allclose(np.concatenate([first[i], second[i]]), expected, rtol=1e-4, atol=1e-5)
    for i, expected in ((2, d_gamma), (3, d_beta)):  # each context has its own share, as in MXNet
        np.testing.assert_allclose(first[i] + second[i], expected, rtol=1e-4, atol=1e-5)
    for found in (first, second):
        np.testing.assert_allclose(found[4], mean, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[5], var, rtol=1e-5)


def test_contexts_meet_again_and_again():
    once = together("again")
    for _ in range(20):
        for a, b in zip(once, together("again")):
            assert all((x == y).all() for x, y in zip(a, b))


def test_contexts_in_executors():
    s = mx.sym.contrib.SyncBatchNorm(
        mx.sym.var("x"), key="executors", ndev=2, fix_gamma=False, momentum=0.75, name="bn"
    )
    assert s.list_outputs() == ["bn_output"] and s.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    bound = [s.simple_bind(mx.cpu(i), x=(4, 3, 2)) for i in CONTEXTS]
    for ex, (x, _) in zip(bound, parts()):
        for name, v in (("x", x), ("bn_gamma", [0.5, 2, 1]), ("bn_beta", [0.1, 0.2, 0.3])):
            ex.arg_dict[name][:] = np.asarray(v)
        ex.aux_dict["bn_moving_mean"][:], ex.aux_dict["bn_moving_var"][:] = 0, 1
    for ex in bound:
        ex.forward(is_train=True)
    for ex, i, (_, dy) in zip(bound, CONTEXTS, parts()):
        ex.backward([mx.nd.array(dy, ctx=mx.cpu(i))])
    y, dx, *_, mean, _ = whole((4, 4))
    np.testing.assert_allclose(np.concatenate([ex.outputs[0].asnumpy() for ex in bound]), y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.concatenate([ex.grad_dict["x"].asnumpy() for ex in bound]), dx, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bound[1].aux_dict["bn_moving_mean"].asnumpy(), mean, rtol=1e-5, atol=1e-6)


def test_threads_meet_without_the_engine():
    """Under an engine that runs all at once, each context needs a thread."""
    import threading

    from mxcore.testing.engines import use_engine

    old = use_engine("NaiveEngine")
    found = {}

    def run(i):
        x = mx.nd.array(parts()[i][0], ctx=mx.cpu(i))
        with mx.autograd.record():
            found[i] = mx.nd.contrib.SyncBatchNorm(
                x, *[mx.nd.ones((3,), ctx=mx.cpu(i))] * 4, key="threads", ndev=2
            ).asnumpy()

    try:
        threads = [threading.Thread(target=run, args=(i,)) for i in CONTEXTS]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        use_engine(old)
    both = np.concatenate([found[0], found[1]])
    np.testing.assert_allclose(both.mean((0, 2)), 1, atol=1e-5)
    assert abs(found[0].mean() - 1) > 0.1


@pytest.mark.parametrize("engine", ["ThreadedEnginePerDevice", "NaiveEngine"])
def test_nobody_waits_in_vain(engine, monkeypatch):
    from mxcore.testing.engines import use_engine

    monkeypatch.setenv("MXCORE_SYNC_TIMEOUT", "0.2")
    old = use_engine(engine)
    x, three = mx.nd.ones((2, 3)), [mx.nd.ones((3,))] * 4
    try:
        for _ in range(2):  # what was left of a meeting does not count for the next
            with (
                mx.autograd.record(),
                pytest.raises(
                    mx.MXNetError, match="the forward pass with key='lone' needs ndev=2 contexts, and only cpu.0. came"
                ),
            ):
                mx.nd.contrib.SyncBatchNorm(x, *three, key="lone", ndev=2).asnumpy()
        # Nobody waits when not training.
        assert mx.nd.contrib.SyncBatchNorm(x, *three, key="lone", ndev=2).shape == (2, 3)
        with mx.autograd.record():
            assert mx.nd.contrib.SyncBatchNorm(
                x, *three, key="lone", ndev=2, use_global_stats=True
            ).asnumpy().shape == (2, 3)
    finally:
        use_engine(old)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "needs parameter 'key'"),
        ({"key": "k", "ndev": 0}, "'ndev' must be int between 1 and 1024"),
        ({"key": "k", "axis": 1}, "has no parameter 'axis'"),
    ],
)
def test_sync_refusals(shapes, params, says):
    with pytest.raises(mx.MXNetError, match=f"operator _contrib_SyncBatchNorm.*{says}"):
        shapes("_contrib_SyncBatchNorm", [(4, 3, 2), *[None] * 4], **params)


@pytest.mark.parametrize("axis", [1, -1])
def test_positive_part(axis):
    c = (4, 3, 2)[axis]
    arrays = [mx.nd.array(a) for a in (wave((4, 3, 2), 1), wave((c,), 2), wave((c,), 3), np.zeros(c), np.ones(c))]
    arrays[0].attach_grad()
    found = []
    for relu in (
        lambda *a, **k: mx.nd.contrib.BatchNormWithReLU(*a, **k),
        lambda *a, **k: mx.nd.relu(mx.nd.BatchNorm(*a, **k)),
    ):
        with mx.autograd.record():
            y = relu(*arrays[:3], *[a.copy() for a in arrays[3:]], fix_gamma=False, axis=axis)
        y.backward(mx.nd.array(wave((4, 3, 2), 4)))
        found.append((y.asnumpy(), arrays[0].grad.asnumpy()))
    assert (found[0][0] == 0).any() and (found[0][0] > 0).any()
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    s = mx.sym.contrib.BatchNormWithReLU(mx.sym.var("x"), name="b", output_mean_var=True)
    assert s.list_outputs() == ["b_output", "b_mean", "b_var"] and s.list_auxiliary_states() == [
        "b_moving_mean",
        "b_moving_var",
    ]


def test_moving_statistics_move_at_once(restless):
    """Who predicts in another thread sees the old ones or the new ones."""
    import threading

    net = mx.gluon.nn.BatchNorm(in_channels=3)
    net.initialize()
    net.running_mean.set_data(mx.nd.ones((3,)) * 4)
    x, over, seen = mx.nd.ones((5, 3)) * 4, threading.Event(), set()

    def watch():
        while not over.is_set():
            seen.update(net.running_mean.data().asnumpy().tolist())

    try:
        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(1500):
            with mx.autograd.record():
                y = net(x)
            y.backward()
    finally:
        over.set()
        watcher.join()
    np.testing.assert_allclose(sorted(seen), 4, rtol=1e-4)


def test_a_context_is_in_a_meeting_once():
    """A second use of the layer on a context, by another thread, waits for the next meeting."""
    import threading

    from mxcore.ops.normalization.rendezvous import meet

    found = []

    def run(i):
        found.append(meet("once", "forward", 2, ("cpu", i), i))

    threads = [threading.Thread(target=run, args=(i,)) for i in (0, 0, 1, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[0, 1]] * 4
