"""Pictures that are read, cut and put into batches, beside MXNet 1.9.1."""

from __future__ import annotations

import pytest

import mxcore as mx

from . import pictures


@pytest.mark.parametrize("kind", ["ImageIter", "DataLoader"])
def test_epoch(beside, few, tmp_path, kind):
    count = 256 if few(256) == 256 else 2 * pictures.BATCH
    pictures.write(tmp_path, count)
    folder = str(tmp_path)
    beside(
        f"{kind}, {count} JPEGs",
        pictures.epoch(mx, kind, folder),
        pictures,
        (kind, folder),
        number=1,
        rounds=4,
        at_most=1,
    )
