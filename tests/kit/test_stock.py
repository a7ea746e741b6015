"""The stock operators pass the conformance kit: all of them on the CPU, and a few of each kind on the toy device."""
import importlib.util
import pathlib

import pytest

import mxcore as mx
from mxcore._core.manager import manager
from mxcore.testing.conformance import check_op, pytest_generate_tests, test_conformance

__all__ = ["pytest_generate_tests", "test_conformance"]

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


@pytest.mark.parametrize("name", """
    broadcast_add elemwise_add _plus_scalar sum Reshape slice where Concat SliceChannel topk _zeros FullyConnected Convolution BatchNorm
    Dropout LeakyReLU RNN SoftmaxOutput Embedding sgd_mom_update _sample_negative_binomial _linalg_gemm2 Pooling softmax LayerNorm
    _random_normal multi_mp_sgd_mom_update
""".split())
def test_on_the_toy_device(toy, name):
    check_op(name, toy)
