"""Fixtures of the operator tests, and how they run: with kernels, and over the reference bodies."""

import pathlib

import pytest

from mxcore._core import tables

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("both_ways")


@pytest.fixture
def shapes():
    """Inferred shapes of an operator: ``shapes(name, ins, outs=None, **params) -> (ins, outs)``."""
    from mxcore._core.infer import op_shapes

    def infer(name, ins, outs=None, **params):
        op = tables.ops.get(name)
        return op_shapes(op, op.parse(params), list(ins), outs and list(outs))

    return infer


@pytest.fixture
def dtypes():
    """Inferred dtypes, by name, of an operator: ``dtypes(name, ins, outs=None, **params) -> (ins, outs)``."""
    import numpy as np

    from mxcore._core.infer import op_dtypes

    def infer(name, ins, outs=None, **params):
        op = tables.ops.get(name)
        found = op_dtypes(
            op, op.parse(params), [t and np.dtype(t) for t in ins], outs and [t and np.dtype(t) for t in outs]
        )
        return tuple([t and t.name for t in part] for part in found)

    return infer
