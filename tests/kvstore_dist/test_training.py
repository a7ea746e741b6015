"""Two workers train what one trains on the whole batch, in every way that users train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mxcore_kv_dist.server import Server
from tests.kvstore_dist import training
from tests.kvstore_dist.processes import TOKEN, ends, reaped, spawn, worker

#: The sums of two halves are rounded otherwise than that of the whole; half precision of mixed precision likewise.
TOLERANCE = {"mixed_precision by dist_sync": 2e-3, "mixed_precision by allreduce": 2e-3}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """Parameters of the worker alone, and of both of two."""
    folder = tmp_path_factory.mktemp("training")
    files = [str(folder / f"{name}.npz") for name in ("alone", "first", "second")]
    servers = [Server(i, 2, 2, TOKEN.encode()) for i in range(2)]
    addresses = [s.address for s in servers]
    with reaped() as made:
        made.append(spawn("training.py", files[0]))
        made += [worker(addresses, rank, 2, "training.py", files[1 + rank]) for rank in range(2)]
        assert [ends(process, 120) for process in made] == [0, 0, 0]
    assert all(s.wait(10) for s in servers)
    for server in servers:
        server.close()
    loaded = [np.load(file) for file in files]
    yield loaded
    for file in loaded:
        file.close()


@pytest.mark.parametrize("way", training.WAYS)
def test_two_workers_are_as_one(way: str, results: list[Any]) -> None:
    alone, first, second = results
    names = [name for name in alone.files if name.startswith(way + "/")]
    assert names
    for name in names:
        tolerance = TOLERANCE.get(way, 2e-5)
        np.testing.assert_allclose(first[name], alone[name], rtol=tolerance, atol=tolerance, err_msg=name)
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def test_something_was_learned(results: list[Any]) -> None:
    """What is compared are not the first values."""
    alone = results[0]
    weights = {name: alone[name] for name in alone.files if name.endswith("one_weight")}
    assert len(weights) > 2
    for name, weight in weights.items():
        assert np.abs(weight).max() > 0.3, name
