"""KVStores of one process beside MXNet 1.9.1: 40 MB from two CPU contexts, with an optimizer."""

from __future__ import annotations

import pytest

import mxcore as mx

from . import stores

#: Of MXNet's time.
AT_MOST = 0.9


@pytest.fixture(autouse=True)
def on_cpu(ctx):
    if ctx.device_type != "cpu":
        pytest.skip("the contexts are those of the CPU")


@pytest.mark.parametrize("number", stores.KEYS)
@pytest.mark.parametrize("kind", stores.TYPES)
def test_dense(beside, kind, number):
    step = stores.dense(mx, kind, number)
    assert all((a.asnumpy() == b.asnumpy()).all() for a, b in step())
    beside(
        f"{kind}, push and pull, {number} key{'s' * (number > 1)}",
        step,
        stores,
        ("dense", kind, number),
        5,
        at_most=AT_MOST,
    )


@pytest.mark.parametrize("kind", stores.TYPES)
def test_row_sparse(beside, kind):
    step = stores.row_sparse(mx, kind)
    assert all(out.indices.shape == (stores.ROWS,) for out in step())
    beside(f"{kind}, push and pull of rows", step, stores, ("row_sparse", kind), 5, at_most=AT_MOST)
