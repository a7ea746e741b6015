"""Automatic mixed precision: casts of calls, scaled losses, converted networks."""

import logging
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.base import MXNetError
from mxcore.contrib import amp
from mxcore.contrib.amp import casting
from mxcore.gluon import nn

from ..golden import amp_cases

F16, F32 = np.float16, np.float32


@pytest.fixture(params=["float16", "bfloat16"])
def target(request):
    amp.init(request.param)
    yield np.dtype(nd.zeros(1, dtype=request.param).dtype)
    casting.stop()


@pytest.fixture
def half():
    amp.init()
    yield
    casting.stop()


def network(prefix="amp_"):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(
            nn.Conv2D(4, 3, in_channels=2),
            nn.BatchNorm(in_channels=4),
            nn.Activation("relu"),
            nn.Dense(8, in_units=36),
            nn.LayerNorm(in_channels=8),
            nn.Dense(3, in_units=8),
        )
    mx.random.seed(3)
    net.initialize(mx.init.Xavier(), force_reinit=True)
    return net


def batch(n=24):
    x = np.random.RandomState(0).randn(n, 2, 5, 5).astype("float32")
    return nd.array(x), nd.array((x.sum(axis=(1, 2, 3)) > 0) + (x[:, 0, 0, 0] > 1))


def losses(net, steps, mixed, hybrid=False):
    """The losses of a training, of those steps that updated something, and the trainer."""
    if hybrid:
        net.hybridize()
    x, y = batch()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    if mixed:
        amp.init_trainer(trainer)
    criterion, found = gluon.loss.SoftmaxCrossEntropyLoss(), []
    for _ in range(steps):
        before = net[0].weight.data().asnumpy()
        with autograd.record():
            loss = criterion(net(x), y)
            if mixed:
                with amp.scale_loss(loss, trainer) as scaled:
                    scaled.backward()
        if not mixed:
            loss.backward()
        trainer.step(len(x))
        if (before != net[0].weight.data().asnumpy()).any():
            found.append(float(loss.mean().asscalar()))
    return found, trainer


# -- calls ----------------------------------------------------------------------------------------------------------


def test_calls_on_arrays_cast(target):
    x, w = nd.ones((2, 4)), nd.ones((3, 4))
    y = nd.FullyConnected(x, w, no_bias=True, num_hidden=3)
    assert np.dtype(y.dtype) == target and y.astype("float32").asnumpy().tolist() == [[4] * 3] * 2
    for wide in (
        y.exp(),
        y.softmax(),
        y.sum(),
        y**2,
        2**y,
        1 / y,
        nd.mean(y),
        nd.Activation(y, act_type="softrelu"),
        nd.LeakyReLU(y, act_type="elu"),
        y + nd.ones((2, 3)),
        nd.ones((1, 3)) * y,
        nd.maximum(y, nd.ones((2, 3))),
        nd.dot(y, x.T[:3]),
        nd.add(nd.ones((2, 3)), y),
        nd.stack(y, nd.ones((2, 3))),
    ):
        assert wide.dtype == F32
    for narrow in (nd.relu(y), nd.Activation(y, act_type="relu"), y + y, y * y, nd.dot(y, y, transpose_b=True)):
        assert np.dtype(narrow.dtype) == target
    for _ in range(3):  # the short way of small arrays is not taken past the casts
        assert (y**2).dtype == F32 and (x + x).dtype == F32
    rows = nd.array([[1, 0], [0, 2]]).tostype("csr")  # the casts know dense arrays only
    assert (
        nd.FullyConnected(rows, nd.ones((2, 2)), no_bias=True, num_hidden=2).dtype == F32
        and nd.dot(rows, y).dtype == F32
    )
    y *= 4
    assert np.dtype(y.dtype) == target and y.astype("float32").asnumpy().tolist() == [[16] * 3] * 2
    y **= 2  # another array
    assert y.dtype == F32 and y.asnumpy().tolist() == [[256] * 3] * 2
    assert nd.exp(nd.ones(2, dtype="float64")).dtype == np.float64 and (nd.ones(2, dtype="int32") + 1).dtype == np.int32
    with pytest.raises(MXNetError):
        nd.FullyConnected(nd.ones((2, 4), dtype="float64"), w, no_bias=True, num_hidden=3)


@pytest.mark.parametrize("hybrid", [False, True])
def test_operators_without_a_rule_that_take_one_dtype(target, hybrid):
    """They compute in the widest dtype, where MXNet fails."""
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(2, 1, in_channels=2),
        nn.PReLU(),
        gluon.contrib.cnn.ModulatedDeformableConvolution(3, 3, in_channels=2),
    )
    net.initialize()
    net.hybridize(hybrid)
    x = nd.ones((1, 2, 4, 4))
    with autograd.record():
        y = net(x)
    y.backward()
    assert y.dtype == F32 and net[1].alpha.grad().dtype == F32
    narrow = nd.Convolution(x, nd.ones((2, 2, 1, 1)), kernel=(1, 1), num_filter=2, no_bias=True)
    assert nd.BilinearSampler(narrow, nd.zeros((1, 2, 2, 2))).dtype == F32
    lists = amp.list_lp16_fp32_ops(target)
    # Any dtypes will do.
    assert np.dtype(nd.SequenceMask(narrow, nd.ones(2), use_sequence_length=True).dtype) == (
        target if "SequenceMask" in lists else F32
    )


def test_bfloat16_batch_norm_keeps_its_parameters():
    amp.init("bfloat16", target_precision_ops=["BatchNorm"])
    try:
        net = nn.BatchNorm(in_channels=2)
        net.initialize()
        assert np.dtype(net(nd.ones((3, 2))).dtype).name == "bfloat16" and net.gamma.data().dtype == F32
    finally:
        casting.stop()


def test_calls_on_symbols_cast(half):
    s, v = mx.sym, mx.sym.Variable
    with mx.name.NameManager():
        net = s.softmax(s.FullyConnected(v("d"), num_hidden=3, name="fc"), name="sm") + v("z")
    assert net.get_internals().list_outputs() == [
        "d",
        "amp_cast0_output",
        "fc_weight",
        "amp_cast1_output",
        "fc_bias",
        "amp_cast2_output",
        "fc_output",
        "amp_cast3_output",
        "sm_output",
        "z",
        "amp_multicast0_output0",
        "amp_multicast0_output1",
        "_plus0_output",
    ]
    assert "amp_cast" not in net.tojson() and "amp_cast" in net.tojson(remove_amp_cast=False)
    with mx.AttrScope(ctx_group="a"), mx.name.NameManager():
        assert s.exp(v("d")).attr_dict()["amp_cast0"]["ctx_group"] == "a"
    with mx.name.NameManager():
        assert s.BatchNorm(v("d")).list_auxiliary_states() == ["batchnorm0_moving_mean", "batchnorm0_moving_var"]
        assert len(s.concat(v("d"), v("e"), v("d")).get_internals().list_outputs()) == 7


def test_own_lists():
    amp.init(
        target_precision_ops=["exp"], fp32_ops=["relu"], conditional_fp32_ops=[("Activation", "act_type", ["tanh"])]
    )
    try:
        x = nd.ones((2, 2))
        assert (
            nd.exp(x).dtype == F16
            and nd.relu(nd.exp(x)).dtype == F32
            and nd.FullyConnected(x, x, no_bias=True, num_hidden=2).dtype == F32
        )
        assert (
            nd.Activation(nd.exp(x), act_type="tanh").dtype == F32
            and nd.Activation(nd.exp(x), act_type="softrelu").dtype == F16
        )
    finally:
        casting.stop()


def test_the_state_is_told_by_the_names_of_mxnet():
    assert (amp._amp_initialized, amp._amp_loss_scale_initialized, amp._loss_scaler) == (False, False, None)
    amp.init()
    try:
        trainer = mx.gluon.Trainer(network().collect_params(), "sgd")
        assert amp._amp_initialized is True and amp._amp_loss_scale_initialized is False
        amp.init_trainer(trainer)
        assert amp._amp_loss_scale_initialized is True and amp._loss_scaler is trainer._amp_loss_scaler
    finally:
        casting.stop()


def test_init_once(caplog):
    with caplog.at_level(logging.INFO):
        amp.init()
    try:
        assert caplog.messages == ["Using AMP"]
        with pytest.warns(match="on already, with float16; this call changes nothing"):
            amp.init(np.float16)
        with pytest.warns(match="it stays, and bfloat16 is not taken"):
            amp.init("bfloat16")
    finally:
        casting.stop()
    assert nd.FullyConnected(nd.ones((1, 2)), nd.ones((1, 2)), no_bias=True, num_hidden=1).dtype == F32
    y = nd.ones((2, 2), dtype="float16")
    assert (y**2).dtype == F16 and "amp" not in mx.sym.exp(mx.sym.Variable("x")).tojson(remove_amp_cast=False)


@pytest.mark.parametrize(
    "kwargs, text",
    [
        (dict(target_dtype="float64"), "target_dtype must be 'float16' or 'bfloat16', got 'float64'"),
        (dict(target_dtype=None), "got None"),
        (dict(target_precision_ops=["expp"]), "target_precision_ops names 'expp', which is no operator, did you mean"),
        (dict(fp32_ops="exp"), "fp32_ops must be a list of names"),
        (dict(fp32_ops=[3]), "must be a list of names"),
        (dict(fp32_ops=["FullyConnected"]), "FullyConnected cannot be in both target_precision_ops and fp32_ops"),
        (
            dict(target_precision_ops=["Activation"]),
            "Activation cannot be in both target_precision_ops and conditional_fp32_ops",
        ),
        (
            dict(conditional_fp32_ops=["relu"]),
            "must be a list of .operator, parameter, list of values., all texts; one is 'relu'",
        ),
        (dict(conditional_fp32_ops=3), "must be a list of"),
        (dict(conditional_fp32_ops=[("Activatio", "act_type", ["relu"])]), "names 'Activatio'"),
        (
            dict(conditional_fp32_ops=[("Activation", "act_typ", ["relu"])]),
            "Activation has no parameter 'act_typ', did you mean 'act_type'",
        ),
    ],
)
def test_bad_lists(kwargs, text):
    with pytest.raises(AssertionError, match=text):
        amp.init(**kwargs)
    assert not casting.is_on()
    renamed = {"target_precision_ops": "target_dtype_ops"}
    with pytest.raises(AssertionError, match=text.replace("target_precision_ops", "target_dtype_ops")):
        amp.convert_symbol(mx.sym.Variable("x"), **{renamed.get(k, k): v for k, v in kwargs.items()})


def test_output_operators_scale_their_gradients(half, caplog):
    trainer = gluon.Trainer([], "sgd")
    amp.init_trainer(trainer)
    x, label = nd.array([[1.0, 2.0]]), nd.array([0.0])
    x.attach_grad()
    for kwargs, factor in (({}, 1), ({"grad_scale": 2}, 2)):
        with autograd.record():
            y = nd.SoftmaxOutput(x, label, **kwargs)
        y.backward()
        p = np.exp([1, 2]) / np.exp([1, 2]).sum()
        assert np.allclose(x.grad.asnumpy(), trainer._amp_loss_scaler.loss_scale * factor * (p - [1, 0]), rtol=1e-4)
    with caplog.at_level(logging.WARNING):
        mx.sym.SoftmaxOutput(mx.sym.Variable("x"))
    assert caplog.messages == [
        "SoftmaxOutput does not support dynamic loss scaling in symbolic and hybridized execution."
    ]


def test_gradients_are_left_alone(half):
    """What rules of gradients compute is not cast, in gradients of gradients neither."""
    x = nd.array([[1.0, 2.0]], dtype="float16")
    x.attach_grad()
    with autograd.record():
        y = nd.sqrt(x) * nd.relu(x)
        (g,) = autograd.grad([y], [x], create_graph=True)
    assert g.dtype == F16
    g.backward()
    assert x.grad.dtype == F16 and np.allclose(x.grad.asnumpy(), [[0.75, 0.75 / 2**0.5]], rtol=1e-2)


# -- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hybrid", [False, True])
def test_training_is_near_that_in_float32(target, hybrid):
    mixed, trainer = losses(network(), 40, True, hybrid)
    casting.stop()
    plain, _ = losses(network(), 40, False, hybrid)
    assert mixed[-1] < 0.4 * mixed[0] and np.allclose(mixed[:15], plain[:15], rtol=0.1, atol=0.02)
    assert all(p.data().dtype == F32 and (p.grad_req == "null" or p.grad().dtype == F32) for p in trainer._params)


def test_overflow_passes_over_the_update(half, caplog):
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "momentum": 0.9})
    amp.init_trainer(trainer)
    scaler, seen = trainer._amp_loss_scaler, []
    scaler._scale_seq_len = 3
    for factor in (1, 1e30, 1, 1, 1, 1):
        with autograd.record():
            loss = net(nd.array([[1, 0]])).astype("float32") * factor * 0.125
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
        with caplog.at_level(logging.INFO):
            trainer.step(1)
        seen.append((net.weight.data().asnumpy()[0].tolist(), scaler.loss_scale))
    # A factor that was found counts for the next step.
    assert [s for _, s in seen] == [65536, 65536, 32768, 32768, 32768, 65536]
    assert seen[0][0] == [0.875, 1] == seen[1][0] and seen[2][0][0] < 0.875
    assert caplog.messages == [
        "AMP: decreasing loss scale to 32768.000000",
        "AMP: increasing loss scale to 65536.000000",
    ]


def test_scaler_bounds(caplog):
    scaler, p = amp.LossScaler(), gluon.Parameter("w", shape=(2,))
    p.initialize()
    scaler._next_loss_scale, scaler._unskipped = 2.0**24, 1999
    assert not scaler.has_overflow([p]) and scaler._next_loss_scale == 2.0**24
    assert not scaler.has_overflow([]) and scaler._unskipped == 1
    for bad in (np.nan, np.inf, -np.inf):
        p.grad()[:] = bad
        assert scaler.has_overflow([p])
    p.grad_req = "null"
    assert not scaler.has_overflow([p])


def test_several_losses_and_added_gradients(half):
    net = nn.Dense(2, in_units=2, use_bias=False)
    net.initialize(mx.init.One())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    amp.init_trainer(trainer)
    amp.init_trainer(trainer)  # again: a scaler of its own
    trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = 2.0**10
    x = nd.array([[1, 2]])
    with autograd.record():
        y = net(x)
        with amp.scale_loss([y.sum(), 3 * y.sum()], trainer) as scaled:
            assert isinstance(scaled, list)
            autograd.backward(scaled)
    amp.unscale(trainer)
    assert net.weight.grad().asnumpy().tolist() == [[4, 8], [4, 8]] and trainer._scale == 1
    amp.unscale(trainer)
    assert net.weight.grad().asnumpy().tolist() == [[4, 8], [4, 8]]
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[-1, -3], [-1, -3]]
    net.weight.grad_req = "add"
    net.weight.zero_grad()
    for _ in range(3):
        with autograd.record(), amp.scale_loss(net(x).sum(), trainer) as scaled:
            scaled.backward()
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[-2.5, -6], [-2.5, -6]]


def test_stores_that_update(half):
    def trainer(**kwargs):
        net = nn.Dense(1, in_units=2)
        net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        return net, gluon.Trainer(net.collect_params(), "sgd", **kwargs)

    for net, t in (trainer(), trainer(kvstore="local"), trainer(update_on_kvstore=False)):
        t.step(1, ignore_stale_grad=True)  # which makes the store
        amp.init_trainer(t)
        before = net.weight.data(mx.cpu(0)).asnumpy()
        with autograd.record():
            outs = [net(nd.ones((1, 2), ctx=mx.cpu(i))) * 1e38 for i in range(2)]
            with amp.scale_loss(outs, t) as scaled:
                autograd.backward(scaled)
        t.step(1)
        assert (net.weight.data(mx.cpu(1)).asnumpy() == before).all()
    with pytest.raises(
        ValueError, match="it was made with update_on_kvstore=True.*make a trainer with update_on_kvstore=False"
    ):
        amp.init_trainer(trainer(update_on_kvstore=True)[1])
    sparse = gluon.contrib.nn.SparseEmbedding(2, 2)
    sparse.initialize()
    with pytest.raises(ValueError, match="row_sparse weights"):
        amp.init_trainer(gluon.Trainer(sparse.collect_params(), "sgd"))


def test_what_was_forgotten():
    net = nn.Dense(1, in_units=1)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(AssertionError, match="AMP not initialized, did you forget to call amp.init"):
        amp.init_trainer(trainer)
    amp.init()
    try:
        for call in (lambda: amp.scale_loss(nd.ones(1), trainer).__enter__(), lambda: amp.unscale(trainer)):
            with pytest.raises(RuntimeError, match="call amp.init_trainer.trainer. once"):
                call()
        with pytest.raises(TypeError, match="only compatible with Gluon Trainer; got an optimizer .SGD."):
            amp.init_trainer(mx.optimizer.SGD())
        with pytest.raises(TypeError, match="should be a Gluon Trainer, got int"):
            amp.init_trainer(3)
    finally:
        casting.stop()


# -- converted networks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", amp_cases.GRAPHS)
def test_converted_graphs_can_be_bound(graph):
    """Dtypes fit, whatever the way, also where MXNet's do not; a graph converted twice is that converted once."""
    found = 0
    for name, convert in amp_cases.cases(mx, amp.convert_symbol):
        if name.split()[0] == graph:
            found += 1
            symbol = mx.sym.load_json(convert())
            said = symbol.attr_dict()
            _, outs, _ = symbol.infer_type(
                **{n: "float32" for n in symbol.list_inputs() if "__dtype__" not in said.get(n, {})}
            )
            assert None not in outs and np.float16 not in outs, name
            if name.endswith(" 0"):
                assert amp.convert_symbol(symbol).tojson(remove_amp_cast=False) == symbol.tojson(remove_amp_cast=False)
    assert found == len(amp_cases.WAYS)


def test_convert_symbol_where_mxnet_fails():
    s, v = mx.sym, mx.sym.Variable
    fc = s.FullyConnected(v("data"), num_hidden=3, no_bias=True, name="fc")
    out = amp.convert_symbol(s.LeakyReLU(fc, act_type="prelu", name="p"))
    assert "p_gamma_amp_cast_float16_output" in out.get_internals().list_outputs()
    _, (y,), _ = out.infer_type("float32", "float32", "float32")
    assert y == F32
    two = amp.convert_symbol(
        s.BilinearSampler(
            s.Convolution(v("d"), kernel=(1, 1), num_filter=2, name="c"), s.exp(v("g"), name="e"), name="b"
        )
    )
    assert two.get_internals().list_outputs()[-4:] == ["c_output_amp_cast_float32_output", "g", "e_output", "b_output"]
    shared = v("w")
    both = s.Group([s.FullyConnected(v("data"), shared, no_bias=True, num_hidden=3, name="a"), s.exp(shared, name="e")])
    out = amp.convert_symbol(both, data_names=["data"], cast_optional_params=True)
    assert out.attr_dict()["w"]["__dtype__"] == "0"  # somebody wants it in float32
    assert amp.convert_symbol(s.exp(v("x", dtype="float64"))).attr_dict()["x"]["__dtype__"] == "1"
    assert amp.convert_symbol(s.exp(v("x", dtype="float16"))).attr_dict()["x"]["__dtype__"] == "0"


def _with_data(name):
    """Operators of one dtype, of a convolution and of what another operator made of the data."""
    s, data = mx.sym, mx.sym.relu(mx.sym.Variable("data"))
    conv = s.Convolution(data, kernel=(1, 1), num_filter=4, name="c")
    return {
        "BilinearSampler": lambda: s.BilinearSampler(conv, s.slice_axis(data, axis=1, begin=0, end=2)),
        "index_copy": lambda: s.contrib.index_copy(conv, s.arange(1), s.slice_axis(data, axis=0, begin=0, end=1)),
        "Concat": lambda: s.concat(conv, data, dim=1),
    }[name]()


@pytest.mark.parametrize("lists", [{}, {"fp32_ops": ["Pooling"]}], ids=["default", "own"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["BilinearSampler", "index_copy", "Concat"])
def test_what_is_made_of_data_alone_may_be_float32(name, dtype, lists):
    net, r = _with_data(name), np.random.RandomState(3)
    args = {
        n: nd.array(r.uniform(-1, 1, s))
        for n, s in zip(net.list_arguments(), net.infer_shape(data=(2, 4, 3, 3))[0])
        if n != "data"
    }
    given = {"data": nd.array(r.uniform(-1, 1, (2, 4, 3, 3)))}
    made, params, _ = amp.convert_model(net, args, {}, target_dtype=dtype, **lists)
    (y,) = made.bind(mx.cpu(), {**params, **given}).forward()
    (wide,) = net.bind(mx.cpu(), {**args, **given}).forward()
    assert y.dtype == F32 and abs(y - wide).max().asscalar() < 0.02 < abs(wide).max().asscalar()


def test_casts_are_called_after_what_mxnet_calls_the_outputs(monkeypatch):
    monkeypatch.setattr(mx.operator.CustomOpProp, "list_outputs", lambda self: ["first"])
    mx.operator.register("amp_names")(type("Prop", (mx.operator.CustomOpProp,), {}))
    x = mx.sym.Variable("x")
    for node, name in (
        (mx.sym.Custom(x, op_type="amp_names", name="c"), "c_first"),
        (mx.sym.contrib.fft(x, name="f"), "f_output"),
        (mx.sym.tanh(x, name="t"), "t_0"),
    ):
        made = amp.convert_symbol(mx.sym.FullyConnected(node, num_hidden=2, no_bias=True))
        assert f"{name}_amp_cast_float16_output" in made.get_internals().list_outputs()


def test_convert_symbol_refuses():
    x = mx.sym.exp(mx.sym.Variable("x"), name="e")
    for kwargs, text in (
        ({"sym": 3}, "the first argument must be a Symbol, got int"),
        ({"excluded_sym_names": "e"}, "excluded_sym_names must be a list of names"),
        ({"data_names": [3]}, "data_names must be a list of names"),
        ({"target_dtype": "int8"}, "target_dtype must be"),
    ):
        with pytest.raises(AssertionError, match=text):
            amp.convert_symbol(**{"sym": x, **kwargs})
    with pytest.warns(match="excluded_sym_names names 'f', which the symbol does not have"):
        amp.convert_symbol(x, excluded_sym_names=["f"])
    with pytest.raises(AssertionError, match="must be a Symbol, got int"):
        amp.convert_model(3, {}, {})
    for args, aux in (([], {}), ({}, None), ({"x": 3}, {})):
        with pytest.raises(AssertionError, match="must be a dict of names and NDArrays"):
            amp.convert_model(x, args, aux)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("optional", [False, True])
def test_convert_hybrid_block(dtype, optional):
    net, (x, _) = network(), batch()
    with pytest.raises(RuntimeError, match="call block.hybridize.. and then run forward"):
        amp.convert_hybrid_block(net)
    net.hybridize()
    want = net(x)
    made = amp.convert_hybrid_block(net, dtype, cast_optional_params=optional)
    assert isinstance(made, gluon.SymbolBlock)
    kinds = {n: np.dtype(p.dtype).name for n, p in made.collect_params().items()}
    assert set(kinds) == set(net.collect_params()) and kinds["amp_conv0_weight"] == (dtype if optional else "float32")
    assert (
        kinds["amp_batchnorm0_gamma"] == "float32"
        and made.collect_params()["amp_batchnorm0_running_mean"].grad_req == "null"
    )
    got = made(x)
    assert got.dtype == F32 and 0 < abs(got - want).max().asscalar() < 0.1
    again = amp.convert_hybrid_block(
        made, dtype, excluded_sym_names=["amp_conv0_fwd", "amp_dense0_fwd", "amp_dense1_fwd"]
    )
    assert abs(again(x) - want).max().asscalar() < (0.1 if optional else 1e-5)
    with pytest.raises(AssertionError, match="block must be a HybridBlock, got int"):
        amp.convert_hybrid_block(3)


def test_convert_model_and_files(tmp_path):
    net, (x, _) = network(), batch()
    net.hybridize()
    want = net(x).asnumpy()
    net.export(str(tmp_path / "net"))
    sym, args, aux = mx.model.load_checkpoint(str(tmp_path / "net"), 0)
    made, new_args, new_aux = amp.convert_model(sym, args, aux, cast_optional_params=True)
    assert (
        new_args["amp_dense0_weight"].dtype == F16
        and args["amp_dense0_weight"].dtype == F32
        and new_aux["amp_batchnorm0_running_var"].dtype == F32
    )
    made.save(str(tmp_path / "low-symbol.json"), remove_amp_cast=False)
    nd.save(
        str(tmp_path / "low-0000.params"),
        {f"arg:{k}": v for k, v in new_args.items()} | {f"aux:{k}": v for k, v in new_aux.items()},
    )
    block = gluon.SymbolBlock.imports(str(tmp_path / "low-symbol.json"), ["data"], str(tmp_path / "low-0000.params"))
    assert np.allclose(block(x).asnumpy(), want, atol=0.05)
    module = mx.mod.Module(made, label_names=None)
    module.bind([("data", x.shape)], for_training=False)
    module.set_params(new_args, new_aux)
    module.forward(mx.io.DataBatch([x]), is_train=False)
    assert np.allclose(module.get_outputs()[0].asnumpy(), want, atol=0.05)


def test_convert_bucketing_module():
    def sym_gen(n):
        h = mx.sym.sum(mx.sym.Variable("data"), axis=1, keepdims=True, name="total")
        return (
            mx.sym.SoftmaxOutput(mx.sym.FullyConnected(h, num_hidden=3, name="fc"), name="softmax"),
            ("data",),
            ("softmax_label",),
        )

    mod = mx.mod.BucketingModule(sym_gen, 5)
    for bad in (3, mod):
        with pytest.raises(AssertionError, match="must be a BucketingModule|must be bound and have parameters"):
            amp.convert_bucketing_module(bad)
    shapes = [("data", (2, 5))], [("softmax_label", (2,))]
    mod.bind(*shapes)
    mod.init_params(mx.init.One())
    made = amp.convert_bucketing_module(mod, excluded_sym_names=["total"])
    assert not made.binded and made.params_initialized
    made.bind(*shapes, for_training=False)
    for n in (5, 3):
        data = mx.io.DataBatch(
            [nd.ones((2, n))], [nd.ones(2)], bucket_key=n, provide_data=[("data", (2, n))], provide_label=shapes[1]
        )
        made.forward(data, is_train=False)
        assert "fc_weight_amp_cast_float16" in str(made.symbol.get_internals().list_outputs())
        assert np.allclose(made.get_outputs()[0].asnumpy(), 1 / 3, atol=1e-3)


def test_lists_and_names():
    for dtype in ("float16", np.float16, "bfloat16"):
        assert (
            "FullyConnected" in amp.list_lp16_ops(dtype)
            and "exp" in amp.list_fp32_ops(dtype)
            and "dot" in amp.list_widest_type_cast(dtype)
        )
        assert "relu" in amp.list_lp16_fp32_ops(dtype) and (
            "LeakyReLU",
            "act_type",
            ["elu", "selu"],
        ) in amp.list_conditional_fp32_ops(dtype)
        assert "SoftmaxOutput" in amp.list_loss_output_functions(dtype)
    assert amp.list_lp16_use_fp32_params("float16") is None and "BatchNorm" in amp.list_lp16_use_fp32_params("bfloat16")
    assert amp.list_fp16_ops is amp.list_lp16_ops
    for fn in (amp.list_lp16_ops, amp.list_fp32_ops):
        with pytest.raises(AssertionError, match="target_dtype must be"):
            fn("int8")


def test_the_uninitialised_pays_nothing():
    """Without `init`, calls go straight to dispatch."""
    from mxcore._core import dispatch
    from mxcore._core.op import Op
    from mxcore.symbol.base import SymbolBase

    def seams():
        return Op.run, Op.apply, SymbolBase.before

    straight = dispatch.call, dispatch.invoke, None
    assert seams() == straight
    amp.init()
    assert all(a is not b for a, b in zip(seams(), straight))
    casting.stop()
    assert seams() == straight
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        casting.stop()
