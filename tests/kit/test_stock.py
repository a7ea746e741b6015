"""The stock operators pass the conformance kit: all of them on the CPU, and a few of each kind on the toy device."""
import importlib.util
import pathlib

import pytest

import mxcore as mx
from mxcore._core import registry
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


#: Operators that must look at values, or at what a solver says of them, before they know what to do, and why.
_ASK_THE_HOST = {
    "take": "mode='raise' compares indices with the length before it takes",
    "_linalg_trsm": "a zero on the diagonal shows as an exception of the solver, which a queue raises too late",
    "_histogram": "the edges of its bins are given as numbers",
    "CTCLoss": "numbers out of range are an error",
    "SequenceLast": "numbers out of range are an error",
    "SequenceReverse": "numbers out of range are an error",
    "_backward_ctc_loss": "numbers out of range are an error",
    "_image_resize": "numbers out of range are an error",
    "_ravel_multi_index": "numbers out of range are an error",
    "_sequence_last_spread": "numbers out of range are an error",
    "_unravel_index": "numbers out of range are an error",
}


@pytest.mark.slow
def test_every_operator_on_the_toy_device(toy):
    """All operators run on a device that refuses to become NumPy; the list of exceptions is exact."""
    failed = {}
    for op in {id(o): o for o in registry.ops.items.values()}.values():
        try:
            check_op(op.name, toy, checks=["declared", "value"])
        except AssertionError as e:
            failed[op.name] = str(e)
    assert set(failed) == set(_ASK_THE_HOST), "\n".join(f"{n}: {e}" for n, e in failed.items() if n not in _ASK_THE_HOST)
