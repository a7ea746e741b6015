import random

import mxcore as mx
from mxcore import cli
from mxcore.testing.conformance import check_op, operators
from mxcore.testing.mutate import mutated
from mxcore.testing.robust import check_use
from mxcore.testing.ways import kernels_reached


def test_the_kernel_computes():
    with kernels_reached() as found:
        y = mx.nd.softsign(mx.nd.array([-1, 0, 3]))
    assert found == {"softsign"} and y.asnumpy().tolist() == [-0.5, 0, 0.75]


def test_it_goes_before_the_others(capsys):
    assert cli.main(["info", "--kernels", "softsign"]) == 0
    assert "1. kernel of toy_kernel (toy-kernel)" in capsys.readouterr().out


def test_it_passes_the_conformance_kit():
    check_op("softsign", mx.cpu())


def test_uses_that_nobody_meant_do_no_harm():
    (op,) = operators("softsign")
    for seed in range(20):
        check_use(mutated(op, random.Random(seed)))
