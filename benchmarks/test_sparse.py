"""Sparse products and lazy updates beside MXNet 1.9.1."""

from __future__ import annotations

import pytest

import mxcore as mx

from . import sparse

#: Of MXNet's time.
AT_MOST = 1.0


@pytest.fixture(autouse=True)
def on_cpu(ctx):
    if ctx.device_type != "cpu":
        pytest.skip("MXNet runs on the CPU")


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("shape", sparse.PRODUCTS)
def test_product(beside, shape, backward):
    step = sparse.product(mx, shape, backward)
    assert step().stype == ("row_sparse" if backward else "default")
    name = f"csr times dense, {shape}{', with the gradient' if backward else ''}"
    beside(name, step, sparse, ("product", shape, backward), 5, rounds=4, at_most=AT_MOST)


@pytest.mark.parametrize("backward", [False, True])
def test_whole_product(compare, ctx, backward):
    """100,000 rows of 1,000,000 columns, which MXNet's wheel cannot hold."""
    step = sparse.product(mx, "whole", backward)
    compare(f"csr times dense, whole{', with the gradient' if backward else ''}", step, None, rounds=5)


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_lazy_adam(beside, stype):
    step = sparse.adam(mx, stype)
    assert step().stype == stype
    beside(f"lazy Adam of one row in a hundred, {stype} weight", step, sparse, ("adam", stype), 5, at_most=AT_MOST)
