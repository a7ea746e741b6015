"""The stock operators on the device whose queues run as late as they may: a few, all of them in slow tests."""

import pytest

from mxcore.testing.conformance import check_op, operators

FEW = """
    broadcast_add elemwise_add _plus_scalar sum Reshape where Concat SliceChannel _zeros FullyConnected BatchNorm
    Dropout Embedding sgd_mom_update softmax _random_normal take cast_storage _advanced_set
""".split()


@pytest.mark.parametrize("name", FEW)
def test_a_few(late, name):
    check_op(name, late[1])


#: What may go wrong where results come late; the few see all checks.
LATE = "declared value pure out overlap wanted gradient grad_req graph elsewhere".split()


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({o.name for o in operators()} - set(FEW)))
def test_all_others(late, name):
    check_op(name, late[1], LATE)
