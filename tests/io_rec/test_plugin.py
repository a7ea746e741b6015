"""The plugin as others see it, and the digits it brings."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
import mxcore_io_rec
from mxcore_io_rec import digits_files, digits_path
from mxcore_io_rec.recordio import MXIndexedRecordIO, read_index, unpack_img

ROOT = Path(__file__).resolve().parents[2]


def test_declared_names_are_there():
    assert mxcore_io_rec.API_VERSION == 1
    for name, place in mxcore_io_rec.mxcore_iterators().items():
        module, attribute = place.split(":")
        found = getattr(importlib.import_module(module), attribute)
        assert found.__name__ == name and issubclass(found, mx.io.MXDataIter)
        assert getattr(mx.io, name) is found
    for place in mxcore_io_rec.mxcore_cli().values():
        command = importlib.import_module(place)
        assert command.help and callable(command.add_arguments) and callable(command.main)


def test_records_need_neither_opencv_nor_fsspec():
    program = (
        "import sys, mxcore_io_rec, mxcore_io_rec.recordio as r\n"
        f"assert len(list(r.MXRecordIO({digits_path()!r}, 'r'))) == 1797\n"
        "print([m for m in ('cv2', 'fsspec', 'numba', 'tqdm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_missing_opencv_is_told():
    program = (
        "import sys; sys.modules['cv2'] = None\nfrom mxcore_io_rec.codec import decode\n"
        "try: decode(b'x')\nexcept ImportError as e: print(type(e).__mro__[1].__name__, e)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "MXNetError" in done.stdout and "pip install opencv-python-headless" in done.stdout


def test_the_digits():
    files = digits_files()
    record = MXIndexedRecordIO(files["path_imgidx"], files["path_imgrec"], "r")
    assert record.keys == list(range(1797))
    header, image = unpack_img(record.read_idx(1234))
    assert image.shape == (28, 28) and image.dtype == np.uint8 and header.id == 1234 and 0 <= header.label <= 9
    with pytest.raises(ValueError, match="split must be one of all, train, test"):
        digits_files("valid")


def test_the_split_is_even_and_complete():
    keys = {name: {key for key, _ in read_index(digits_files(name)["path_imgidx"])} for name in ("train", "test")}
    assert keys["train"] | keys["test"] == set(range(1797)) and not keys["train"] & keys["test"]
    for name, count in (("train", 1438), ("test", 359)):
        it = mx.io.ImageRecordIter(**digits_files(name), data_shape=(1, 28, 28), batch_size=count)
        _, (labels,), pad, _ = it.next_arrays()
        shares = np.bincount(labels.astype(int)) / count
        assert pad == 0 and len(shares) == 10 and abs(shares - 0.1).max() < 0.004
        it.close()


def test_the_digits_are_what_the_script_makes(tmp_path):
    pytest.importorskip("sklearn")
    spec = importlib.util.spec_from_file_location("build_digits", ROOT / "tools" / "build_digits.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.build(tmp_path)
    bundled = Path(digits_path()).parent
    for name in ("digits_train.idx", "digits_test.idx"):
        assert dict(read_index(bundled / name)).keys() == dict(read_index(tmp_path / name)).keys()
    mine, theirs = (
        MXIndexedRecordIO(folder / "digits.idx", folder / "digits.rec", "r") for folder in (bundled, tmp_path)
    )
    for key in range(0, 1797, 7):  # the images, as compression differs from one OpenCV to the next
        (a, image), (b, other) = unpack_img(mine.read_idx(key)), unpack_img(theirs.read_idx(key))
        assert a == b and np.abs(image.astype(int) - other).max() <= 1
