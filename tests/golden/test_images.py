"""``mx.image`` gives what the real MXNet 1.9.1 gave from the same seeds: pixels, windows, labels, texts."""

import pathlib

import numpy as np
import pytest

import mxcore as mx

from . import image_cases

with np.load(pathlib.Path(__file__).resolve().parent / "data" / "images.npz") as file:
    GOLDEN = dict(file)


def test_the_file_holds_these_cases():
    assert {k.partition(".")[0] for k in GOLDEN} == set(image_cases.CASES)


@pytest.mark.parametrize("name", image_cases.CASES)
def test_as_mxnet(name):
    found = image_cases.run(mx, name)
    assert len(found) == sum(k.startswith(f"{name}.") and k.endswith(".shape") for k in GOLDEN)
    for i, value in enumerate(found):
        key = f"{name}.{i}"
        assert value.shape == tuple(GOLDEN[f"{key}.shape"]), key
        want = GOLDEN[key]
        part = value.ravel()[::31] if value.size > 700 else value.ravel()
        if value.ndim == 0 or value.dtype.kind == "i":
            assert part.tolist() == want.tolist(), key
            continue
        assert value.dtype.str == GOLDEN[f"{key}.dtype"], key
        # Pixels of the cubic method differ by a few between OpenCV's versions, at the edges of overshoots by more.
        pixels = name in image_cases.LOOSE and value.ndim > 2 and value.shape[-1] != 5
        scale = 57 if np.issubdtype(value.dtype, np.floating) and name in ("classes", "detection") else 1
        if pixels:
            off = np.abs(part.astype("float64") - want) * scale
            assert off.mean() < 1 and np.quantile(off, 0.99) < 9, key
        else:
            np.testing.assert_allclose(part, want, rtol=1e-4, atol=2e-4 if value.dtype.kind == "f" else 0, err_msg=key)
