"""What of the kit over the stock operators is slow."""

from __future__ import annotations

import pytest

#: Operators whose fused chains are compiled in the ordinary suite: maps, reductions, parameters, mixed dtypes.
_QUICK = ("Activation", "LeakyReLU", "broadcast_add", "_plus_scalar", "sum", "mean", "where", "sgd_mom_update", "Cast")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Compiling a chain for each of the operators takes minutes."""
    for item in items:
        if item.path.name == "test_stock.py" and item.name.endswith("-fused]"):
            operator = item.name.removesuffix("-fused]").rpartition(")-")[2]
            if operator not in _QUICK:
                item.add_marker(pytest.mark.slow)
