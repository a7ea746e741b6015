"""Every layer: printed form, parameters, values and gradients as in MXNet 1.9.1, eager and hybridised."""

import inspect
import json
import os

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import nn

from . import cases

GOLDEN = os.path.join(os.path.dirname(__file__), "golden")


@pytest.fixture(scope="module")
def golden():
    with open(os.path.join(GOLDEN, "layers.json")) as f:
        told = json.load(f)
    with np.load(os.path.join(GOLDEN, "layers.npz")) as arrays:
        return told, dict(arrays)


@pytest.fixture(scope="module")
def made():
    with mx.name.NameManager():
        return cases.layers(nn)


@pytest.mark.parametrize("i", range(45))
def test_layer_is_as_in_mxnet(i, golden, made):
    told, arrays = golden
    layer, shape = made[i]
    texts, found = cases.run_layer(layer, shape, mx)
    assert texts == told[i]
    wanted = {k.split(".", 1)[1]: v for k, v in arrays.items() if k.startswith(f"{i}.")}
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].shape == value.shape, key
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5, err_msg=f"{texts[0]} {key}")


@pytest.mark.parametrize("i", range(45))
def test_hybridised_and_traced_layers_agree(i, made):
    layer, shape = cases.layers(nn)[i]
    x = mx.nd.array(
        cases.values(shape, 3) if "Embedding" not in repr(layer) else np.arange(np.prod(shape)).reshape(shape)
    )
    layer.initialize()
    eager = layer(x).asnumpy()
    layer.hybridize()
    np.testing.assert_allclose(layer(x).asnumpy(), eager, rtol=1e-5, atol=1e-6)
    seen = []
    layer.register_op_hook(lambda name, op, array: seen.append(op))
    np.testing.assert_allclose(layer(x).asnumpy(), eager, rtol=1e-5, atol=1e-6)
    assert seen and "null" not in seen


@pytest.mark.parametrize("i", range(45))
def test_symbolic_and_explicit_shapes_agree(i):
    layer, shape = cases.layers(nn)[i]
    x = mx.nd.ones(shape)
    mx.gluon.HybridBlock.infer_shape(layer, x)
    symbolic = [p.shape for p in layer.collect_params().values()]
    layer, _ = cases.layers(nn)[i]
    layer.initialize()
    layer(x)
    assert [p.shape for p in layer.collect_params().values()] == symbolic


@pytest.mark.parametrize("layout, channels_last", [("NCHW", "NHWC")])
def test_layouts_have_their_own_weight_shapes(layout, channels_last):
    layer = nn.Conv2D(4, (3, 2), layout=channels_last, in_channels=6, groups=2)
    assert layer.weight.shape == (4, 3, 2, 3)
    assert nn.Conv2D(4, (3, 2), layout=layout, in_channels=6, groups=2).weight.shape == (4, 3, 3, 2)
    assert nn.Conv2DTranspose(4, (3, 2), in_channels=6, groups=2).weight.shape == (6, 2, 3, 2)


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: nn.Conv2D(4, (1, 2, 3)), ["Conv2D", "kernel_size", "2 of them"]),
        (lambda: nn.Conv2D(4, 3, layout="NCDHW"), ["Conv2D", "layout", "NCHW"]),
        (lambda: nn.Conv2D(4, 3, groups=3), ["4 output channels", "3 groups"]),
        (lambda: nn.MaxPool1D(layout="NCHW"), ["MaxPool1D", "layout"]),
        (lambda: nn.LeakyReLU(-1), ["-1"]),
        (lambda: nn.Lambda("no_such_operator"), ["no_such_operator"]),
        (lambda: nn.HybridLambda(3), ["3", "int"]),
        (lambda: nn.ReflectionPad2D((1, 2)), ["padding", "8"]),
    ],
)
def test_bad_arguments_are_named(make, words):
    with pytest.raises(mx.base.MXNetError) as e:
        make()
    assert all(w in str(e.value) for w in words), str(e.value)


def test_constructors_that_are_lent_show_defaults_of_their_own():
    shown = {name: p.default for name, p in inspect.signature(nn.Conv3DTranspose).parameters.items()}
    assert list(shown)[2:6] == ["strides", "padding", "output_padding", "dilation"]
    assert (shown["output_padding"], shown["layout"], shown["use_bias"]) == ((0, 0, 0), "NCDHW", True)
    assert inspect.signature(nn.MaxPool2D).parameters["pool_size"].default == (2, 2)
    assert inspect.signature(nn.Conv1D).parameters["strides"].default == 1  # nobody else's have changed
    with pytest.raises(TypeError, match=r"Conv2D.__init__\(\) missing .*kernel_size"):
        nn.Conv2D(3)


def test_wrong_rank_is_a_clear_error():
    layer = nn.Conv2D(4, 3)
    layer.initialize()
    with pytest.raises(ValueError, match=r"Conv2D.*conv0.*NCHW.*\(2, 3\)"):
        layer(mx.nd.ones((2, 3)))


def test_known_shapes_are_not_overruled():
    layer = nn.Dense(3, in_units=7)
    layer.initialize()
    with pytest.raises(mx.base.MXNetError):
        layer(mx.nd.ones((2, 5))).asnumpy()


def test_batch_norm_keeps_float32():
    net = nn.HybridSequential()
    net.add(nn.Dense(2, in_units=3), nn.BatchNorm(in_channels=2))
    net.cast("float16")
    assert np.dtype(net[0].weight.dtype) == np.float16
    assert np.dtype(net[1].gamma.dtype) == np.float32


def test_dropout_drops_in_training_only():
    layer, x = nn.Dropout(0.5), mx.nd.ones((1000,))
    assert (layer(x).asnumpy() == 1).all()
    with mx.autograd.train_mode():
        kept = layer(x).asnumpy()
    assert set(np.unique(kept)) == {0.0, 2.0} and 350 < (kept == 0).sum() < 650


def test_sequential_indexing():
    net = nn.Sequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3), nn.Dense(4), nn.Dense(5))
    assert len(net) == 3 and net[-1]._units == 5
    part = net[0:2]
    assert isinstance(part, nn.Sequential) and part.prefix == "net_"
    assert [layer is net[i] for i, layer in enumerate(part)] == [True, True]


@pytest.mark.parametrize("kind", [nn.Sequential, nn.HybridSequential])
def test_sequential_passes_several_values_on(kind):
    class Pair(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, state=None):
            return x + 1, (x * 10 if state is None else state + x)

    net = kind()
    net.add(Pair(), Pair())
    x, state = net(mx.nd.ones((1,)))
    assert (x.asscalar(), state.asscalar()) == (3.0, 12.0)


def test_sequential_advises_the_hybrid_one():
    net = nn.Sequential()
    net.add(nn.Dense(2))
    with pytest.warns(UserWarning, match="HybridSequential"):
        net.hybridize()
    assert net[0]._active
