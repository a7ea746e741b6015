"""Fixtures of the operator tests."""
import pytest

from mxcore._core import registry


def _forget_plans():
    for name in registry.ops.names():
        registry.ops.get(name).plans.clear()


@pytest.fixture(params=["kernels", "bodies"])
def either(request, monkeypatch):
    """Run a test with the device's kernels, then with the reference bodies alone."""
    if request.param == "bodies":
        monkeypatch.setattr(registry.kernels, "of", lambda device, op: [])
    _forget_plans()
    yield request.param
    _forget_plans()


@pytest.fixture
def shapes():
    """Inferred shapes of an operator: ``shapes(name, ins, outs=None, **params) -> (ins, outs)``."""
    from mxcore._core.infer import op_shapes

    def infer(name, ins, outs=None, **params):
        op = registry.ops.get(name)
        return op_shapes(op, op.parse(params), list(ins), outs and list(outs))

    return infer


@pytest.fixture
def dtypes():
    """Inferred dtypes, by name, of an operator: ``dtypes(name, ins, outs=None, **params) -> (ins, outs)``."""
    import numpy as np

    from mxcore._core.infer import op_dtypes

    def infer(name, ins, outs=None, **params):
        op = registry.ops.get(name)
        found = op_dtypes(op, op.parse(params), [t and np.dtype(t) for t in ins], outs and [t and np.dtype(t) for t in outs])
        return tuple([t and t.name for t in part] for part in found)

    return infer
