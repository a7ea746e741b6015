"""`CSVIter` and `MNISTIter`."""

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

GOLDEN = json.loads((Path(__file__).parents[1] / "io_rec" / "golden" / "batches.json").read_text())


@pytest.fixture
def table(tmp_path):
    """Seven rows: i, 10 i."""
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i},{10 * i}\n" for i in range(7)))
    return path


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.startswith("csv")])
def test_csv_epochs_are_mxnets(tmp_path, name):
    _, size, round_batch = name.split()
    path = tmp_path / "n.csv"
    path.write_text("".join(f"{i}\n" for i in range(7)))
    it = mx.io.CSVIter(
        data_csv=str(path), data_shape=(1,), label_csv=path, batch_size=int(size), round_batch=round_batch == "True"
    )
    for batches in GOLDEN[name]:
        found = [[b.label[0].asnumpy().tolist(), b.pad] for b in it]
        if round_batch == "True":
            assert found == batches
        else:  # what fills the last batch is not the same; it does not count
            assert [labels[: len(labels) - pad] for labels, pad in found] == [
                labels[: len(labels) - pad] for labels, pad in batches
            ]
        it.reset()


def test_csv_rows_are_reshaped(table):
    it = mx.io.CSVIter(data_csv=table, data_shape=(1, 2), batch_size=3, data_name="x", label_name="y")
    assert it.provide_data == [("x", (3, 1, 2))] and it.provide_label == [("y", (3,))]
    batch = next(it)
    assert batch.data[0].asnumpy().tolist() == [[[0, 0]], [[1, 10]], [[2, 20]]]
    assert batch.label[0].asnumpy().tolist() == [0, 0, 0] and batch.index.tolist() == [0, 1, 2]
    labelled = mx.io.CSVIter(data_csv=table, data_shape=(2,), label_csv=table, label_shape=(2,), batch_size=2)
    assert next(labelled).label[0].asnumpy().tolist() == [[0, 0], [1, 10]]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_csv_types(table, dtype):
    it = mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=3, dtype=dtype)
    assert it.provide_data[0].dtype == np.dtype(dtype) and next(it).data[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
@pytest.mark.parametrize(
    "bad", ["\U0007a478", "\U00020000", "\u0661", "\xa0", "\0", "x", "", "1_0", "0x10", "9" * 5000 + "x"]
)
def test_csv_takes_no_other_characters_for_numbers(table, dtype, bad):
    """NumPy's parser ends the process at some of these, and takes others for digits."""
    table.write_text(f"1,2\n\n3,{bad}\n", encoding="utf-8")
    with pytest.raises(MXNetError, match=r"a\.csv', line 3: ") as caught:
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=1, dtype=dtype)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("text", ["1.5,2\n", "3000000000,1\n", "-2147483649,1\n", "nan,1\n"])
def test_csv_integers_that_do_not_fit(table, text):
    table.write_text(text)
    with pytest.raises(MXNetError, match=r"a\.csv', line 1: could not convert"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=1, dtype="int32")


@pytest.mark.parametrize("text", [b"\xef\xbb\xbf1,2\r\n\r\n3,4\r\n", b"1,2\r3,4\r", b"1,2\n3,4"])
def test_csv_ends_of_lines_and_marks(table, text, monkeypatch):
    monkeypatch.setattr("mxcore.io.csv_iter._PIECE", 4)  # so that ends of lines fall between pieces
    table.write_bytes(text)
    it = mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=2)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2], [3, 4]]


def test_csv_commas_behind_the_last_value(table):
    table.write_bytes(b"1,2,\n3,4\n5,6,")
    it = mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=3)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    table.write_bytes(b"1,2,\n3,\n")
    with pytest.raises(MXNetError, match="line 2"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=1)


def test_csv_lines_without_end(table, monkeypatch):
    monkeypatch.setattr("mxcore.io.csv_iter._LONGEST", 1 << 21)
    table.write_bytes(b"1,2\n" + b"1" * (1 << 23))
    with pytest.raises(MXNetError, match=r"a\.csv', line 2: it has more than 2097152 bytes"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=1)


def test_csv_lines_as_long_as_the_shape_asks_for(table, monkeypatch):
    monkeypatch.setattr("mxcore.io.csv_iter._LONGEST", 1 << 10)
    monkeypatch.setattr("mxcore.io.csv_iter._PIECE", 1 << 9)
    table.write_text("".join(f"{','.join(3000 * [str(row)])}\n" for row in (1, 2)))
    it = mx.io.CSVIter(data_csv=table, data_shape=(3000,), batch_size=2)
    assert next(it).data[0].asnumpy().sum(axis=1).tolist() == [3000, 6000]
    with pytest.raises(MXNetError, match="line 1: it has more than 1024 bytes; is this a text, and the shape right"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=2)


def test_csv_folders_and_stores(table):
    (table.parent / "b.csv").write_text("7,70\n")
    it = mx.io.CSVIter(data_csv=table.parent, data_shape=(2,), batch_size=8)
    assert next(it).data[0].asnumpy()[:, 0].tolist() == list(range(8))
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://store/a.csv", "w") as f:
        f.write("1,2\n")
    it = mx.io.CSVIter(data_csv="memory://store/a.csv", data_shape=(2,), batch_size=1)
    assert next(it).data[0].asnumpy().tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "text, shape, word",
    [
        ("1,2\n3,x\n", (2,), r"a\.csv'.*row 1"),
        ("1,2\n3\n", (2,), r"a\.csv'.*columns"),
        ("a,b\n1,2\n", (2,), r"a\.csv'"),
        ("1,2\n", (3,), "has 2 values"),
        ("", (2,), "holds no row"),
        ("\n\n", (2,), "holds no row"),
    ],
)
def test_csv_files_that_are_none(tmp_path, text, shape, word):
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=word) as caught:
        mx.io.CSVIter(data_csv=path, data_shape=shape, batch_size=1)
    assert isinstance(caught.value, MXNetError)


def test_csv_wrong_arguments(table, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.csv"):
        mx.io.CSVIter(data_csv=tmp_path / "none.csv", data_shape=(2,), batch_size=1)
    with pytest.raises(TypeError, match="dtype must be one of"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=1, dtype="float64")
    (tmp_path / "l.csv").write_text("1\n")
    with pytest.raises(ValueError, match="7 rows, but .*l.csv' only 1"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), label_csv=tmp_path / "l.csv", batch_size=1)
    with pytest.raises(ValueError, match="batch_size"):
        mx.io.CSVIter(data_csv=table, data_shape=(2,), batch_size=0)


@pytest.fixture
def digits(tmp_path):
    """Ten images of 4 x 5 pixels."""
    image, label = tmp_path / "images", tmp_path / "labels"
    image.write_bytes(struct.pack(">IIII", 2051, 10, 4, 5) + bytes(range(200)))
    label.write_bytes(struct.pack(">II", 2049, 10) + bytes(range(10)))
    return {"image": image, "label": label}


def test_mnist_batches_are_mxnets(digits):
    it = mx.io.MNISTIter(**digits, batch_size=3, shuffle=False)
    assert it.provide_data == [("data", (3, 1, 4, 5))] and it.provide_label == [("softmax_label", (3,))]
    for _ in range(2):
        batches = list(it)
        assert [b.label[0].asnumpy().tolist() for b in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
        np.testing.assert_array_equal(batches[1].data[0].asnumpy().ravel() * 256, np.arange(60, 120))
        it.reset()
    flat = mx.io.MNISTIter(**digits, batch_size=3, flat=True)
    assert flat.provide_data[0].shape == (3, 20) and next(flat).data[0].shape == (3, 20)


def test_mnist_order_and_parts(digits):
    def labels(**parameters):
        it = mx.io.MNISTIter(**digits, batch_size=1, **parameters)
        return [int(b.label[0].asnumpy()[0]) for b in it]

    assert sorted(labels()) == list(range(10)) and labels() == labels(seed=0) != labels(seed=1)
    parts = [labels(shuffle=False, num_parts=3, part_index=i) for i in range(3)]
    assert parts == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]


def test_mnist_gzipped(digits):
    digits["image"].write_bytes(gzip.compress(digits["image"].read_bytes()))
    assert next(mx.io.MNISTIter(**digits, batch_size=10, shuffle=False)).data[0].shape == (10, 1, 4, 5)
    digits["image"].write_bytes(digits["image"].read_bytes()[:-9])
    with pytest.raises(ValueError, match="images' is a damaged gzip file"):
        mx.io.MNISTIter(**digits, batch_size=10)


@pytest.mark.parametrize(
    "change, word",
    [
        (lambda b: b[:100], "ends at byte 100, but its header"),
        (lambda b: b"\0\0\x09" + b[3:], "starts with 00 00 09"),
        (lambda b: b"", "starts with nothing"),
        (lambda b: struct.pack(">IIII", 2051, 9, 4, 5) + b[16:-20], "9 images, but .* 10 labels"),
        (lambda b: b + b"x", "goes on, but its header"),
        (lambda b: struct.pack(">IIII", 2051, 2**32 - 1, 2**32 - 1, 2) + b[16:], "ends at byte"),
    ],
)
def test_mnist_damaged_files(digits, change, word):
    digits["image"].write_bytes(change(digits["image"].read_bytes()))
    with pytest.raises(ValueError, match=word) as caught:
        mx.io.MNISTIter(**digits, batch_size=1)
    assert isinstance(caught.value, MXNetError)


@pytest.mark.parametrize("parameters", [{"batch_size": 0}, {"num_parts": 2, "part_index": 2}, {"dtype": "uint8"}])
def test_mnist_wrong_arguments(digits, parameters):
    with pytest.raises(MXNetError, match="MNISTIter: (batch_size|part_index|dtype)"):
        mx.io.MNISTIter(**digits, **parameters)


def test_iterators_over_files_take_mxnets_strings_and_check_them(tmp_path):
    (tmp_path / "d.csv").write_text("1,2,3,4\n" * 7)
    made = dict(data_csv=str(tmp_path / "d.csv"), batch_size="3")
    for shape, want in (("(4,)", (3, 4)), ("(2,2)", (3, 2, 2)), ("[2, 2]", (3, 2, 2)), (4, (3, 4)), ("4", (3, 4))):
        it = mx.io.CSVIter(
            data_shape=shape, label_shape="(1,)", round_batch="1", prefetch_buffer="2", dtype="None", ctx="gpu", **made
        )
        assert it.iter_next() and it.getdata().shape == want == it.provide_data[0].shape and it.getlabel().shape == (3,)
    (tmp_path / "d.svm").write_text("1 0:1 2:3\n0 1:2\n" * 3)
    assert mx.io.LibSVMIter(
        data_libsvm=str(tmp_path / "d.svm"), data_shape="(3,)", num_parts="2", batch_size="2"
    ).next().data[0].shape == (2, 3)
    for wrong in (
        {"round_batch": "x"},
        {"batch_size": 2.5},
        {"batch_size": 0},
        {"prefetch_buffer": "x"},
        {"ctx": "tpu"},
        {"label_shape": "x"},
    ):
        with pytest.raises(mx.MXNetError, match=f"CSVIter: {next(iter(wrong))} must be"):
            mx.io.CSVIter(data_shape=(4,), **{**made, **wrong})
    for wrong in ({"flat": "x"}, {"num_parts": 0}, {"part_index": -1}, {"seed": "x"}, {"silent": 3}, {"shuffle": "x"}):
        with pytest.raises(mx.MXNetError, match=f"MNISTIter: {next(iter(wrong))} must be"):
            mx.io.MNISTIter(image="i", label="l", **wrong)
    with pytest.raises(ValueError, match="LibSVMIter: part_index 2 is none of the 2 parts"):
        mx.io.LibSVMIter(data_libsvm="d", data_shape=(3,), batch_size=1, num_parts=2, part_index="2")


def test_the_first_batch_is_there_before_it_is_taken(tmp_path, caplog):
    (tmp_path / "d.csv").write_text("".join(f"{i},{i}\n" for i in range(4)))
    it = mx.io.CSVIter(data_csv=str(tmp_path / "d.csv"), data_shape=(2,), batch_size=2)
    for _ in range(2):
        first = it.first_batch
        assert first is it.first_batch and first.data[0].asnumpy()[:, 0].tolist() == [0, 1]
        assert it.next() is first and it.first_batch is None
        assert [b.data[0].asnumpy()[0, 0] for b in it] == [2]
        it.reset()
    _ = it.first_batch
    it.reset()
    assert len(list(it)) == 2
    it.reset()
    with caplog.at_level("INFO"):
        it.debug_skip_load()
    assert "simply return first batch" in caplog.text and it.next() is it.next()
