"""The whole conformance kit on the emulated device 1, while device 0 is the active one; ``--whole`` on device 0 too."""

import pytest

from mxcore.testing.catalogue import stock_operators
from mxcore.testing.conformance import check_op

FEW = """
    elemwise_add _plus_scalar sum Reshape Concat SliceChannel FullyConnected softmax
    Embedding sgd_mom_update _random_normal take cast_storage _advanced_set
""".split()

#: Operator -> what a GPU does otherwise.
OTHERWISE = dict.fromkeys(
    ("tan", "_npi_tan", "_rdiv_scalar"),
    "a float that a dtype of whole numbers does not have becomes the nearest that it has; on x86 it wraps around",
)


def told(name):
    """An operator's name, expected to fail where a GPU does otherwise."""
    marks = [pytest.mark.xfail(strict=True, reason=OTHERWISE[name])] if name in OTHERWISE else []
    return pytest.param(name, marks=marks)


def pytest_generate_tests(metafunc):
    if "index" in metafunc.fixturenames:
        metafunc.parametrize("index", [0, 1] if metafunc.config.getoption("--whole", default=False) else [1])


@pytest.mark.parametrize("name", FEW)
def test_a_few(gpus, name):
    check_op(name, gpus[1])


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("name", [told(op.name) for _, op in stock_operators()])
def test_every_operator(gpus, name, index):
    check_op(name, gpus[index])
