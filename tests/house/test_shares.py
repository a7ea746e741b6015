"""The slow tests that ask each operator the same are run in turn: each belongs to one of three shares."""

import pytest

from tests.conftest import of_share


def test_each_test_belongs_to_one_share_of_three_numbers_in_a_row():
    ids = [f"tests/kit/test_stock.py::test_conformance[cpu(0)-{i}]" for i in range(300)]
    for first in (0, 5, 0xFFFFFFFF):
        shares = [{i for i in ids if of_share(i, f"{first + k:x}")} for k in range(3)]
        assert set().union(*shares) == set(ids) and sum(map(len, shares)) == len(ids)
        assert min(map(len, shares)) > 60


def test_a_share_leaves_out_nothing_else(collected):
    kept, left = collected("3")
    assert {name for name in kept if "turn" not in name} == {"plain", "slow"}
    assert left and all(name.startswith("slow and in turn") for name in left)
    assert {n for n in kept if n.startswith("in turn")} == {f"in turn {i}" for i in range(30)}
    whole, none = collected(None)
    assert (sorted(whole), none) == (sorted([*kept, *left]), [])


@pytest.fixture
def collected():
    """What pytest keeps and leaves out of tests with these marks."""
    from types import SimpleNamespace

    from tests.conftest import pytest_collection_modifyitems

    class Item:
        def __init__(self, name, *marks):
            self.nodeid, self.marks = name, marks

        def get_closest_marker(self, name):
            return name in self.marks or None

    def collect(share):
        items = [Item("plain"), Item("slow", "slow")]
        items += [Item(f"in turn {i}", "in_turn") for i in range(30)]
        items += [Item(f"slow and in turn {i}", "in_turn", "slow") for i in range(30)]
        left = []
        config = SimpleNamespace(
            getoption=lambda name: share,
            hook=SimpleNamespace(pytest_deselected=lambda items: left.extend(i.nodeid for i in items)),
        )
        pytest_collection_modifyitems(config, items)
        return [i.nodeid for i in items], left

    return collect
