"""The stock operators pass the conformance kit: all on the CPU, also without kernels, a few on the toy device."""

import importlib.util
import pathlib

import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore._core.manager import manager
from mxcore.testing.conformance import check_op, pytest_generate_tests, test_conformance
from mxcore.testing.ways import reference_bodies

__all__ = ["pytest_generate_tests", "test_conformance"]

pytestmark = pytest.mark.in_turn

#: Into so many parts the operators are divided that are checked over the bodies.
PARTS = 9
TOY = pathlib.Path(__file__).resolve().parents[1] / "toy_plugins" / "toy_device" / "toy_device.py"


@pytest.fixture(scope="module")
def toy():
    """A context of the toy device, which computes behind the caller's back and gives nothing to the host by itself."""
    spec = importlib.util.spec_from_file_location("toy_device", TOY)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    manager.load()
    here = "toy_device" not in manager.origin
    if here:
        manager.register(module, "toy_device")
    yield mx.Context("toy_device", 1)
    if here:
        manager.unregister("toy_device")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    """
    RNN broadcast_add elemwise_add _plus_scalar sum Reshape slice where Concat SliceChannel topk _zeros FullyConnected
    Convolution BatchNorm Dropout LeakyReLU SoftmaxOutput Embedding sgd_mom_update _sample_negative_binomial
    _linalg_gemm2 Pooling softmax LayerNorm _random_normal multi_mp_sgd_mom_update take _histogram SequenceLast
    _linalg_trsm _image_resize
""".split(),
)
def test_on_the_toy_device(toy, name):
    check_op(name, toy)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_over_the_reference_bodies(part):
    """What kernels hide: operators that have some keep what the kit asks where their bodies compute."""
    mx.cpu().device  # noqa: B018  the kernels come with the device
    hidden = sorted({o.name for o in tables.ops.items.values() if tables.kernels.of("cpu", o)})
    assert len(hidden) > 100
    failed = []
    with reference_bodies():
        for name in hidden[part::PARTS]:
            try:
                check_op(
                    name,
                    mx.cpu(),
                    ["declared", "value", "half", "strided", "out", "wanted", "gradient", "second gradient", "graph"],
                )
            except AssertionError as e:
                failed.append(str(e))
    assert not failed, "\n".join(failed)
