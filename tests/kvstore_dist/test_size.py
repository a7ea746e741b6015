"""Many keys, and values larger than 2 GiB; `soak` has long runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mxcore as mx
from tests.kvstore_dist.jobs import all_well, stores, together

TRANSPORTS = ("auto", "tcp")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_thousand_keys(transport: str) -> None:
    keys = [f"a_parameter_with_a_long_name_{i}" for i in range(1000)]

    def run(store: Any) -> Any:
        store.init(keys, [mx.nd.full(i % 7 + 1, i) for i in range(1000)])
        outs = [mx.nd.empty(i % 7 + 1) for i in range(1000)]
        store.pull(keys, out=outs)
        first = [out[0].asscalar() for out in outs]
        for step in range(3):
            store.pushpull(keys, [mx.nd.full(i % 7 + 1, i + step) for i in range(1000)], out=outs)
        return first, [out[0].asscalar() for out in outs]

    with stores(2, 3, transport=transport) as opened:
        for first, last in all_well(together(opened, run)):
            assert first == list(range(1000))
            assert last == [2 * (i + 2) for i in range(1000)]


@pytest.fixture
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Most of a small machine's memory, which two tests cannot have at once."""
    if sys.platform != "linux":
        pytest.skip("what is free is read from /proc")
    import fcntl

    with open(tmp_path_factory.getbasetemp().parent / "room.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        free = int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0]) / 2**20
        if free < 17:
            pytest.skip(f"{free:.0f} GiB of memory are free, 17 are needed")
        yield


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_value_of_more_than_two_gigabytes(transport: str, room: None) -> None:
    """No length, count or offset has 31 bits."""
    size = 2**31 + 4096

    def ends_of(array: Any) -> list[int]:
        host = array._data
        return [int(host[i]) for i in (0, 1, 2**31 - 1, 2**31, size - 1)]

    with stores(1, transport=transport, deadline=300) as (store,):
        value = mx.nd.zeros(size, dtype="uint8")
        value.wait_to_read()
        value._data[:] = 3
        value._data[-1] = 5
        store.init("w", value)
        out = mx.nd.zeros(size, dtype="uint8")
        store.pull("w", out=out)
        out.wait_to_read()
        assert ends_of(out) == [3, 3, 3, 3, 5]
        value._data[:] = 7
        value._data[2**31] = 9
        store.pushpull("w", value, out=out)
        out.wait_to_read()
        assert ends_of(out) == [7, 7, 7, 9, 7]
        assert np.count_nonzero(out._data == 7) == size - 1
