"""`NDArrayIter` against MXNet 1.9.1's batches."""

import json
from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError, MXNetWarning

GOLDEN = json.loads((Path(__file__).parents[1] / "io_rec" / "golden" / "batches.json").read_text())
CASES = [name for name in GOLDEN if name.startswith("array")]


def drain(it):
    return [[b.label[0].asnumpy().tolist(), b.pad] for b in it]


@pytest.mark.parametrize("name", CASES)
def test_epochs_are_mxnets(name):
    _, handle, shuffle, size = name.split()
    np.random.seed(0)
    it = mx.io.NDArrayIter(np.zeros(7), np.arange(7), int(size), shuffle=shuffle == "True", last_batch_handle=handle)
    for batches in GOLDEN[name]:
        assert drain(it) == batches
        it.reset()


def test_hard_reset_forgets_what_rolled_over():
    it = mx.io.NDArrayIter(np.zeros(7), np.arange(7), 3, last_batch_handle="roll_over")
    drain(it)
    it.hard_reset()
    assert drain(it) == [[[0, 1, 2], 0], [[3, 4, 5], 0]]
    it.reset()
    next(it)
    it.reset()  # mid-epoch: nothing has rolled over yet
    assert drain(it)[0] == [[0, 1, 2], 0]


def test_rows_of_data_and_label_belong_together():
    data = np.arange(40, dtype="float32").reshape(10, 2, 2)
    for source in (data, mx.nd.array(data)):
        it = mx.io.NDArrayIter({"b": source, "a": source[:, 0]}, data[:, 0, 0], 4, shuffle=True)
        assert [d.name for d in it.provide_data] == ["a", "b"]
        for batch in it:
            a, b = (x.asnumpy() for x in batch.data)
            np.testing.assert_array_equal(b[:, 0, 0], batch.label[0].asnumpy())
            np.testing.assert_array_equal(b[:, 0], a)
            assert (b.reshape(4, 4) == data.reshape(10, 4)[(b[:, 0, 0] / 4).astype(int)]).all()


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bool"])
def test_numpy_becomes_float32(dtype):
    it = mx.io.NDArrayIter(np.ones((4, 2), dtype), None, 2)
    assert it.provide_data[0].dtype == np.float32 and next(it).data[0].dtype == np.float32
    assert it.provide_label == [] and next(it).label == []


def test_ndarray_keeps_its_type_and_place():
    it = mx.io.NDArrayIter(mx.nd.arange(6, dtype="int32"), None, 4)
    assert it.provide_data[0].dtype == np.int32
    assert [b.data[0].asnumpy().tolist() for b in it] == [[0, 1, 2, 3], [4, 5, 0, 1]]
    assert next(mx.io.NDArrayIter(mx.nd.ones((4, 1)), None, 2)).data[0].context == mx.cpu()


def test_names_and_layout():
    arrays = [np.zeros((4, 1)), np.zeros((4, 2))]
    it = mx.io.NDArrayIter(arrays, arrays, 2, layout="NTC")
    assert [d.name for d in it.provide_data] == ["_0_data", "_1_data"]
    assert [d.name for d in it.provide_label] == ["_0_softmax_label", "_1_softmax_label"]
    assert it.provide_data[1] == ("_1_data", (2, 2)) and it.provide_data[1].layout == "NTC"
    one = mx.io.NDArrayIter(arrays[:1], arrays[:1], 2, data_name="x", label_name="y")
    assert one.provide_data[0].name == "x" and one.provide_label[0].name == "y"
    assert one.num_data == 4 and one.num_source == 2 and one.data[0][1].shape == (4, 1)
    assert mx.io.NDArrayIter([[1, 2], [3, 4]], None, 1).num_source == 2


def test_data_sets_in_files_are_read_in_rising_order():
    class DataSet:  # as h5py has them: only rising rows, no shuffled ones
        shape, dtype = (7, 2), np.dtype("float64")

        def __getitem__(self, rows):
            if not isinstance(rows, slice):
                assert (np.diff(rows) > 0).all()
            return np.arange(14.0).reshape(7, 2)[rows]

    it = mx.io.NDArrayIter(DataSet(), np.arange(7), 4)
    for batch in it:
        data, label = batch.data[0], batch.label[0].asnumpy()
        assert data.dtype == np.float32 and (data.asnumpy()[:, 0] == 2 * label).all()


@pytest.mark.parametrize("kind", [np.array, mx.nd.array])
def test_changing_a_batch_leaves_the_data_alone(kind):
    data, label = kind(np.zeros((4, 2), "float32")), kind(np.zeros(4, "float32"))
    it = mx.io.NDArrayIter(data, label, 2)
    for batch in it:
        batch.data[0] += 1
        batch.label[0] += 1
    mx.nd.waitall()
    assert data.sum() == 0 and label.sum() == 0


def test_the_data_are_those_of_the_beginning():
    data = np.zeros((4, 2), "float32")
    it = mx.io.NDArrayIter(data, None, 2)
    data += 1
    assert [b.data[0].asnumpy().sum() for b in it] == [0, 0]


def test_a_map_of_a_file_is_not_read_at_once(tmp_path):
    data = np.memmap(tmp_path / "data", np.float32, "w+", shape=(4, 2))
    it = mx.io.NDArrayIter(data, None, 2)
    data += 1
    assert [b.data[0].asnumpy().sum() for b in it] == [4, 4]


def test_the_other_way_of_iterating():
    it = mx.io.NDArrayIter(np.arange(5), np.arange(5), 2)
    seen = []
    while it.iter_next():
        seen.append((it.getdata()[0].asnumpy().tolist(), it.getlabel()[0].shape, it.getpad(), it.getindex()))
    assert seen == [([0, 1], (2,), 0, None), ([2, 3], (2,), 0, None), ([4, 0], (2,), 1, None)]
    with pytest.raises(StopIteration):
        it.next()


@pytest.mark.parametrize(
    "kind, arguments, word",
    [
        (TypeError, {"data": None}, "data must be"),
        (TypeError, {"data": "text"}, "data must be"),
        (TypeError, {"data": []}, "data must be"),
        (TypeError, {"data": object()}, "data must be"),
        (TypeError, {"data": [["a"]]}, "_?data must be"),
        (ValueError, {"data": 3.0}, "scalar"),
        (ValueError, {"data": np.zeros((0, 2))}, "no example"),
        (ValueError, {"label": np.zeros(3)}, "differ in their number of examples: .*'data': 4"),
        (ValueError, {"batch_size": 0}, "batch_size"),
        (ValueError, {"last_batch_handle": "keep"}, "last_batch_handle"),
    ],
)
def test_wrong_arguments(kind, arguments, word):
    with pytest.raises(kind, match=word) as caught:
        mx.io.NDArrayIter(**{"data": np.zeros((4, 2)), "batch_size": 2, **arguments})
    assert isinstance(caught.value, MXNetError)


def test_longer_arrays_are_cut_and_shorter_ones_refused():
    data = {"a": np.arange(10.0).reshape(5, 2), "b": np.arange(14.0).reshape(7, 2)}
    with pytest.warns(MXNetWarning, match="the first array has 5 examples") as told:
        it = mx.io.NDArrayIter(data, np.arange(8), batch_size=3)
    assert len(told) == 1 and it.num_data == 5
    assert [(b.data[1].asnumpy()[:, 0].tolist(), b.label[0].asnumpy().tolist(), b.pad) for b in it] == [
        ([0, 2, 4], [0, 1, 2], 0),
        ([6, 8, 0], [3, 4, 0], 1),
    ]
    for label in (np.arange(8), np.arange(3)):
        with pytest.raises(ValueError, match="differ in their number of examples"):
            mx.io.NDArrayIter({"a": data["b"], "b": data["a"]}, label)


def test_the_number_of_examples_does_not_depend_on_the_rest():
    assert mx.io.NDArrayIter(np.arange(5), batch_size=3, last_batch_handle="discard").num_data == 5


def test_memory_that_is_only_called_mapped_is_copied(tmp_path):
    """NumPy keeps the class of a mapped file's array for what is computed from it."""
    np.save(tmp_path / "a.npy", np.ones((8, 4)))
    data = np.load(tmp_path / "a.npy", mmap_mode="r").astype("float32")
    assert isinstance(data, np.memmap)
    it = mx.io.NDArrayIter(data, batch_size=4)
    data[:] = 7
    assert (next(it).data[0].asnumpy() == 1).all()
