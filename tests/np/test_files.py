"""``npx.save`` and ``npx.load``."""

import numpy as onp
import pytest

import mxcore as mx
from mxcore import np, npx


def _np(values, dtype="float32"):
    return mx.nd.array(onp.asarray(values, dtype), dtype=dtype).as_np_ndarray()


@pytest.mark.parametrize("ending", ["params", "npz"])
def test_what_was_saved_is_read(tmp_path, ending):
    with mx.util.np_shape():
        scalar = mx.nd.full((), 3).as_np_ndarray()
        empty = mx.nd.full((2, 0), 0).as_np_ndarray()
    arrays = {"a": _np([1, 2], "int32"), "scalar": scalar, "empty": empty}
    name = str(tmp_path / f"x.{ending}")
    npx.save(name, arrays)
    found = npx.load(name)
    assert {k: (type(v), v.shape, v.dtype) for k, v in found.items()} == {
        k: (np.ndarray, v.shape, v.dtype) for k, v in arrays.items()
    }
    for k, v in arrays.items():
        onp.testing.assert_array_equal(found[k].asnumpy(), v.asnumpy())


def test_lists_and_single_arrays(tmp_path):
    name = str(tmp_path / "x.params")
    npx.save(name, _np([1, 2]))
    (found,) = npx.load(name)
    assert found.asnumpy().tolist() == [1, 2]
    npx.save(name, [_np([1]), _np([2])])
    assert [x.asnumpy().tolist() for x in npx.load(name)] == [[1], [2]]
    assert [type(x) for x in mx.nd.load(name)] == [mx.nd.NDArray] * 2 if npx.is_np_shape() else True


def test_numpys_archives(tmp_path):
    onp.savez(tmp_path / "x.npz", a=onp.arange(3), b=onp.ones((2, 2), "float16"))
    found = npx.load(str(tmp_path / "x.npz"))
    assert found["a"].dtype == onp.int64 and found["b"].dtype == onp.float16


def test_bad_files_and_arguments(tmp_path):
    (tmp_path / "x.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"x\.npz"):
        npx.load(str(tmp_path / "x.npz"))
    with pytest.raises(TypeError, match="npx.save"):
        npx.save(str(tmp_path / "y"), {"a": onp.ones(2)})
    assert not (tmp_path / "y").exists()
    with pytest.raises(OSError, match="missing"):
        npx.load(str(tmp_path / "missing"))
