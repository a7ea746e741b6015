"""Devices over array libraries: the conformance kit, what they declare, whose memory is whose."""

import importlib.util

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.plugin import API_VERSION, ArrayAPINamespace, hookimpl
from mxcore.testing.case import cases
from mxcore.testing.conformance import Failures, check_op, operators

from .libraries import TOYS, module, registered

#: Operators with what is special about arrays: indices, views, sums by index, random numbers, linear algebra, sparse
#: values.
SOME = """
    broadcast_add _mod sum argmax Reshape transpose slice Concat sort FullyConnected BatchNorm Dropout Embedding
    sgd_mom_update gather_nd scatter_nd _advanced_set _basic_index _basic_index_spread pick _linalg_potrf
    _random_randint _shuffle SequenceReverse _contrib_fft cast_storage Pad reverse Cast
""".split()


@pytest.fixture(scope="module")
def plain():
    """A device over NumPy, with nothing that the standard does not have."""
    plugin = type("Plugin", (), {"API_VERSION": API_VERSION})
    plugin.mxcore_devices = staticmethod(
        hookimpl(lambda: [module("strict_device").Standard("numpy", 1100811029)], specname="mxcore_devices")
    )
    manager.load()
    manager.register(plugin, "plain_numpy")
    yield mx.Context("numpy", 0)
    manager.unregister("plain_numpy")


@pytest.fixture(scope="module")
def strict():
    """The device over array-api-strict."""
    pytest.importorskip("array_api_strict")
    leave = registered("strict_device")
    yield mx.Context("array_api_strict", 0)
    leave()


@pytest.fixture(scope="module")
def library(request):
    """The strictest of the libraries that are there."""
    return request.getfixturevalue("strict" if importlib.util.find_spec("array_api_strict") else "plain")


@pytest.fixture(scope="module")
def torch():
    """The device over PyTorch."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")
    leave = registered("torch_device")
    yield mx.Context("torch", 0)
    leave()


@pytest.mark.parametrize("name", SOME)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kit(library, name):
    check_op(name, library, ["declared", "value", "pure", "strided", "empty", "overlap", "grad_req", "graph"])


#: What the library computes; how eager calls, graphs and requests go together is the core's, on any device.
COMPUTED = "declared value strided empty gradient half".split()
PARTS = 9


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("device", ["strict", "torch"])
def test_every_operator(request, device, part):
    ctx, failed = request.getfixturevalue(device), []
    for op in [*operators()][part::PARTS]:
        try:
            check_op(op, ctx, COMPUTED)
        except Failures as e:
            failed.append(str(e))
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("name", ["strict_device", "torch_device"])
def test_a_device_is_short(name):
    lines = (TOYS / name / f"{name}.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 80


def test_errors_of_dtypes_name_device_dtype_and_operator(strict):
    x = mx.nd.ones((2, 3), ctx=strict)
    with pytest.raises(
        mx.MXNetError, match="operator Cast: device 'array_api_strict' has no float16; it has bool, float32,"
    ) as e:
        x.astype("float16")
    assert isinstance(e.value, TypeError)
    with pytest.raises(mx.MXNetError, match="operator _zeros: device 'array_api_strict' has no float16"):
        mx.nd.zeros((2,), ctx=strict, dtype="float16")
    with pytest.raises(
        mx.MXNetError,
        match=r"device 'array_api_strict' of strict_device: from_host\(\) raised TypeError: .* has no float16",
    ):
        mx.nd.array(np.ones(2, "f2"), ctx=strict, dtype="float16")
    graph = mx.sym.Cast(mx.sym.Variable("x"), dtype="float16")
    with pytest.raises(mx.MXNetError, match="operator Cast: device 'array_api_strict' has no float16"):
        graph.bind(strict, {"x": x}).forward()


def test_the_kit_leaves_out_what_a_device_lacks(strict):
    op = operators("sum")[0]
    asked = {c.dtype for c in cases(op, mx.cpu())}
    assert {c.dtype for c in cases(op, strict)} == asked - {"float16"}
    for c in cases(operators("relu")[0], mx.cpu()):
        assert not c.missing()
    check_op("relu", strict, ["half"])


@pytest.fixture(scope="module")
def poor():
    """A device over NumPy that says it has a few dtypes."""

    class Poor(module("strict_device").Standard):
        xp = ArrayAPINamespace(np, {"dtypes": "bool int32 int64 float32 float64"})

        def count(self):
            return 1

    plugin = type("Plugin", (), {"API_VERSION": API_VERSION})
    plugin.mxcore_devices = staticmethod(hookimpl(lambda: [Poor("poor", 1100811031)], specname="mxcore_devices"))
    manager.load()
    manager.register(plugin, "poor_numpy")
    yield mx.Context("poor", 0)
    manager.unregister("poor_numpy")


@pytest.mark.parametrize(
    "draw",
    [
        lambda ctx: mx.nd.random.uniform(shape=(3, 5), ctx=ctx),
        lambda ctx: mx.nd.random.uniform(shape=(3, 5), ctx=ctx, dtype="float64"),
        lambda ctx: mx.nd.random.normal(shape=(7,), ctx=ctx),
        lambda ctx: mx.nd.random.gamma(0.5, 2.0, shape=(40,), ctx=ctx),
        lambda ctx: mx.nd.random.poisson(30.0, shape=(40,), ctx=ctx),
        lambda ctx: mx.nd.random.randint(0, 1000, shape=(9,), ctx=ctx),
        lambda ctx: mx.nd.random.randint(0, 2**40, shape=(9,), ctx=ctx, dtype="int64"),
        lambda ctx: mx.nd.random.shuffle(mx.nd.arange(50, ctx=ctx)),
        lambda ctx: mx.nd.random.negative_binomial(3, 0.4, shape=(20,), ctx=ctx),
    ],
    ids=lambda f: None,
)
def test_random_numbers_without_uint64_are_the_same(plain, poor, draw):
    found = []
    for ctx in (plain, poor):
        mx.random.seed(5)
        found.append(draw(ctx).asnumpy())
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 3


@pytest.mark.slow
def test_memory_of_tensors(torch):
    device, xp = torch.device, torch.device.xp
    a = device.from_host(np.arange(12.0), 0)
    assert (
        device.owns(a)
        and device.owns(device.empty((2, 3), np.float32, 0))
        and not device.owns(a[1:3])
        and not device.owns(a.reshape(3, 4))
    )
    assert (
        device.shares(a, a[1:3])
        and device.shares(a.reshape(3, 4)[:, 1:], a.reshape(4, 3))
        and not device.shares(a[:3], a[3:])
    )
    assert not device.shares(a, a.copy()) and not device.shares(a[:0], a)
    assert not device.owns(xp.Array(a.value[2:].detach())) and not device.owns(a.reshape(3, 4).T)
    x = mx.nd.array(np.arange(4.0), ctx=torch)
    x[1:3] = 7
    y = x.reshape((2, 2))
    y[0] = 1
    assert x.asnumpy().tolist() == [1, 1, 7, 3]
    with pytest.raises(mx.MXNetError, match="operator Cast: device 'torch' has no uint64; it has"):
        x.astype("uint64")
    with pytest.raises(mx.MXNetError, match="device 'torch'"):
        device.to_host(None)
