"""Initializers: which rule a name calls for, the scale of the noise, and the JSON."""

import json
import logging

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

init = mx.init


def filled(initializer, name="fc_weight", shape=(40, 30), attrs=None, seed=1):
    mx.random.seed(seed)
    array = mx.nd.ones(shape) * 5
    initializer(init.InitDesc(name, attrs), array)
    return array.asnumpy()


class Seven(init.Initializer):
    """Fills weights with 7."""

    def _init_weight(self, name, arr):
        arr[:] = 7


@pytest.mark.parametrize(
    "name, value",
    [
        ("fc_weight", 7),
        ("weight", 7),
        ("stn_loc_weight", 7),
        ("upsampling_weight", 7),
        ("x_quantized_weight", 7),
        ("fc_bias", 0),
        ("bn_beta", 0),
        ("bn_gamma", 1),
        ("x_min", 0),
        ("x_weight_max", 1),
        ("x_bias_quantize", 0),
    ],
)
def test_endings(name, value):
    assert (filled(Seven(), name, (2, 3)) == value).all()


@pytest.mark.parametrize("name", ["bn_moving_mean", "bn_running_var", "fc_Weight", "x", "rnn_parameters"])
def test_other_endings_are_refused(name):
    with pytest.raises(MXNetError, match=f"'{name}'.*'gamma'"):
        filled(Seven(), name)


@pytest.mark.parametrize(
    "name, value",
    [
        ("fc_weight", 7),
        ("fc_bias", 0),
        ("bn_moving_mean", 0),
        ("bn_moving_var", 1),
        ("stn_loc_weight", 0),
        ("x_moving_avg", 0),
        ("x_moving_inv_var", 0),
        ("bn_gamma", 1),
    ],
)
def test_plain_strings_are_deprecated(name, value):
    array = mx.nd.ones((2, 3))
    with pytest.warns(DeprecationWarning, match="InitDesc"):
        Seven()(name, array)
    assert (array.asnumpy() == value).all()


def test_legacy_specials():
    affine, up = mx.nd.zeros(6), mx.nd.zeros((1, 1, 4, 4))
    with pytest.warns(DeprecationWarning):
        Seven()("stn_loc_bias", affine)
        Seven()("upsampling0_weight", up)
    assert affine.asnumpy().tolist() == [1, 0, 0, 0, 1, 0]
    assert up.asnumpy()[0, 0, 0].tolist() == [0.0625, 0.1875, 0.1875, 0.0625]


def test_attributes_take_precedence():
    assert (filled(Seven(), "anything", (2,), {"__init__": '["one", {}]'}) == 1).all()
    assert (filled(Seven(), "fc_bias", (2,), {"__init__": init.Constant(3)}) == 3).all()
    with pytest.raises(MXNetError, match="nosuch"):
        filled(Seven(), "x", (2,), {"__init__": '["nosuch", {}]'})
    desc = init.InitDesc("fc_weight", {"a": "b"})
    assert desc == "fc_weight" and desc.attrs == {"a": "b"} and desc.global_init is None
    seven = Seven()
    seven(desc, mx.nd.zeros(1))
    assert desc.global_init is seven


DUMPS = {
    '["zero", {}]': lambda: init.Zero(),
    '["one", {}]': lambda: init.One(),
    '["constant", {"value": 3}]': lambda: init.Constant(3),
    '["constant", {"value": [1.0, 2.0]}]': lambda: init.Constant(mx.nd.array([1, 2])),
    '["uniform", {"scale": 0.07}]': lambda: init.Uniform(),
    '["normal", {"sigma": 0.01}]': lambda: init.Normal(),
    '["orthogonal", {"scale": 1.414, "rand_type": "uniform"}]': lambda: init.Orthogonal(),
    '["xavier", {"rnd_type": "uniform", "factor_type": "avg", "magnitude": 3}]': lambda: init.Xavier(),
    '["msraprelu", {"factor_type": "avg", "slope": 0.25}]': lambda: init.MSRAPrelu(),
    '["bilinear", {}]': lambda: init.Bilinear(),
    '["lstmbias", {"forget_bias": 1.0}]': lambda: init.LSTMBias(),
    '["fusedrnn", {"init": "[\\"zero\\", {}]", "num_hidden": 3, "num_layers": 1, "mode": "lstm", '
    '"bidirectional": false, "forget_bias": 1.0}]': lambda: init.FusedRNN(init.Zero(), 3, 1, "lstm"),
}


@pytest.mark.parametrize("text", DUMPS)
def test_json(text):
    made = DUMPS[text]()
    assert made.dumps() == text and made == init.create(text) and made != init.create("normal", sigma=9)
    assert init.create(json.loads(text)[0], **json.loads(text)[1]) == made


def test_create():
    assert type(init.create("zeros")) is init.Zero and type(init.create("Ones")) is init.One
    xavier = init.Xavier()
    assert init.create(xavier) is xavier
    with pytest.raises(MXNetError, match="xavier"):
        init.create("xavir")

    @init.register
    class Eight(Seven):
        """Registered under its name."""

    init.alias("acht")(Eight)
    assert type(init.create("eight")) is type(init.create("acht")) is Eight


@pytest.mark.parametrize("shape", [(40, 30), (16, 8, 5, 5)])
@pytest.mark.parametrize("factor", ["avg", "in", "out"])
def test_xavier_scale(shape, factor):
    kernel = int(np.prod(shape[2:]))
    fan = kernel * {"in": shape[1], "out": shape[0], "avg": (shape[0] + shape[1]) / 2}[factor]
    uniform = filled(init.Xavier("uniform", factor, 2), shape=shape)
    bound = (2 / fan) ** 0.5
    assert abs(uniform).max() <= bound and abs(uniform).max() > 0.95 * bound
    assert uniform.std() == pytest.approx(bound / 3**0.5, rel=0.1)
    assert filled(init.Xavier("gaussian", factor, 2), shape=shape).std() == pytest.approx(bound, rel=0.1)
    msra = filled(init.MSRAPrelu(factor, 0.5), shape=shape)
    assert msra.std() == pytest.approx((2 / 1.25 / fan) ** 0.5, rel=0.1)


def test_noise():
    uniform = filled(init.Uniform(0.5))
    assert abs(uniform).max() <= 0.5 and uniform.std() == pytest.approx(0.5 / 3**0.5, rel=0.1)
    normal = filled(init.Normal(0.2))
    assert normal.std() == pytest.approx(0.2, rel=0.1) and abs(normal.mean()) < 0.03
    assert (filled(init.Normal(0.2)) == normal).all() and (filled(init.Normal(0.2), seed=2) != normal).any()


@pytest.mark.parametrize("noise", ["uniform", "normal"])
@pytest.mark.parametrize("shape", [(4, 9), (9, 4), (6, 2, 2)])
def test_orthogonal(noise, shape):
    matrix = filled(init.Orthogonal(2.0, noise), shape=shape).reshape(shape[0], -1)
    square = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert np.allclose(square, 4 * np.eye(len(square)), atol=1e-4)


def test_bilinear_interpolates():
    weight = filled(init.Bilinear(), "up_weight", (2, 1, 3, 5))
    assert np.allclose(weight[0, 0], np.outer([1, 2, 3], [1, 2, 3, 2, 1]) / 9)
    assert (weight[1] == weight[0]).all()


def test_constants():
    assert filled(init.Constant([1, 2]), shape=(2,)).tolist() == [1, 2]
    bias = filled(init.Zero(), "x", (8,), {"__init__": init.LSTMBias(2.0)})
    assert bias.tolist() == [0, 0, 2, 2, 0, 0, 0, 0]
    noise = filled(Seven(), "x_weight_quantize", (40, 30))
    assert (noise == np.round(noise)).all() and abs(noise).max() <= 127 and len(np.unique(noise)) > 100


class Counting(init.Initializer):
    """Numbers the parts of a packed vector."""

    def __init__(self):
        super().__init__()
        self.names = []

    def _init_weight(self, name, arr):
        self.names.append(str(name))
        arr[:] = len(self.names)

    _init_bias = _init_weight


@pytest.mark.parametrize("mode, gates", [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_fused_rnn(mode, gates, directions):
    hidden, inputs, layers = 2, 3, 2
    widths = [inputs] + [directions * hidden] * (layers - 1)
    sizes = [hidden * n for w in widths for _ in range(directions) for n in [w] * gates + [hidden] * gates]
    sizes += [hidden] * (layers * directions * 2 * gates)
    counting, array = Counting(), mx.nd.zeros(sum(sizes))
    rule = init.FusedRNN(None, hidden, layers, mode, directions == 2, forget_bias=99.0)
    counting(init.InitDesc("rnn_parameters", {"__init__": rule.dumps()}), array)
    parts = np.split(array.asnumpy(), np.cumsum(sizes)[:-1])
    assert all((part == part[0]).all() for part in parts)
    values = [int(part[0]) for part in parts]
    assert [v for v in values if v != 99] == list(range(1, len(counting.names) + 1))
    assert values.count(99) == (2 * layers * directions if mode == "lstm" else 0)
    first = {"lstm": "l0_i2h_i_weight", "gru": "l0_i2h_r_weight", "rnn_tanh": "l0_i2h_weight"}[mode]
    assert counting.names[0] == first and counting.names[-1].endswith("bias")
    with pytest.raises(MXNetError, match="fit no"):
        rule._init_weight(init.InitDesc("p", global_init=counting), mx.nd.zeros(sum(sizes) + 1))


def test_load(tmp_path):
    path = str(tmp_path / "w.params")
    mx.nd.save(path, {"arg:a_weight": mx.nd.array([1, 2]), "aux:b": mx.nd.array([3, 4])})
    load = init.Load(path, default_init=Seven())
    assert filled(load, "a_weight", (2,)).tolist() == [1, 2] and filled(load, "b", (2,)).tolist() == [3, 4]
    assert filled(load, "c_weight", (2,)).tolist() == [7, 7]
    with pytest.raises(MXNetError, match=r"\(3,\).*\(2,\)"):
        filled(load, "b", (3,))
    with pytest.raises(MXNetError, match="c was not saved"):
        filled(init.Load({"a": mx.nd.zeros(1)}), "c", (1,))
    with pytest.raises(MXNetError, match="dictionary"):
        init.Load([mx.nd.zeros(1)])


def test_mixed():
    mixed = init.Mixed([".*bias", "fc.*"], [init.One(), Seven()])
    assert (filled(mixed, "fc_weight", (2,)) == 7).all()
    assert (filled(mixed, "fc_bias", (2,)) == 0).all()  # One, too, has zero for a bias
    with pytest.raises(MXNetError, match="'conv_weight'"):
        filled(mixed, "conv_weight", (2,))
    with pytest.raises(MXNetError, match="1 patterns"):
        init.Mixed(["a"], [])


def test_verbosity(caplog):
    caplog.set_level(logging.INFO)
    seven = Seven().set_verbosity(True, lambda a: f"sum {a.asnumpy().sum():.0f}")
    filled(seven, "fc_weight", (2,))
    assert "Initialized fc_weight as weight: sum 14" in caplog.text


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: filled(init.Xavier(), shape=(3,)), "2 dimensions"),
        (lambda: init.Xavier(factor_type="all"), "avg, in, out"),
        (lambda: init.Xavier(rnd_type="normal"), "gaussian"),
        (lambda: init.Orthogonal(rand_type="gaussian"), "normal"),
        (lambda: filled(init.Bilinear(), shape=(3, 3)), "4 dimensions"),
        (lambda: init.FusedRNN(None, 1, 1, "cnn"), "rnn_relu"),
        (lambda: init.FusedRNN(None, 1, 1, "gru")._init_weight("p", mx.nd.zeros(12)), "initializer"),
        (lambda: init.Initializer()(init.InitDesc("x_weight"), mx.nd.zeros(1)), "_init_weight"),
        (lambda: Seven()(3, mx.nd.zeros(1)), "InitDesc"),
        (lambda: init.create('["xavier"]'), "form"),
        (lambda: init.create('["xavier"'), "JSON"),
        (lambda: init.create('["xavier", {}]', magnitude=3), "no further arguments"),
    ],
)
def test_errors_name_the_trouble(call, word):
    with pytest.raises(MXNetError, match=word):
        call()
