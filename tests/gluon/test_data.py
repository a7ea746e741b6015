"""Datasets, samplers and batches."""

import pickle

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon.contrib.data import IntervalSampler
from mxcore.gluon.data import (
    ArrayDataset,
    BatchSampler,
    Dataset,
    FilterSampler,
    RandomSampler,
    RecordFileDataset,
    Sampler,
    SequentialSampler,
    SimpleDataset,
)
from mxcore.gluon.data.dataloader import default_batchify_fn, default_mp_batchify_fn


def test_array_dataset():
    d = ArrayDataset([1, 2, 3], np.arange(3), mx.nd.arange(3), mx.nd.ones((3, 2)))
    number, integer, real, array = d[1]
    assert (number, integer, real) == (2, 1, 1.0) and isinstance(real, np.float32)
    assert isinstance(array, mx.nd.NDArray) and array.shape == (2,) and len(d) == 3
    assert ArrayDataset([1, 2, 3])[1] == 2
    with pytest.raises(AssertionError, match="at least 1"):
        ArrayDataset()
    with pytest.raises(AssertionError, match=r"array\[0\] has length 2 while array\[1\] has 1"):
        ArrayDataset([1, 2], [1])


def test_transforms():
    d = ArrayDataset([1, 2], [10, 20])
    assert list(d.transform(lambda x, y: x + y)) == [11, 22]
    assert list(d.transform_first(lambda x: -x)) == [(-1, 10), (-2, 20)]
    assert list(SimpleDataset([1, 2]).transform_first(lambda x: -x)) == [-1, -2]
    calls = []
    lazy = SimpleDataset([1, 2]).transform(calls.append)
    assert len(lazy) == 2 and calls == []
    eager = SimpleDataset([1, 2]).transform(lambda x: calls.append(x) or x * 2, lazy=False)
    assert isinstance(eager, SimpleDataset) and calls == [1, 2]
    assert list(eager) == [2, 4] and calls == [1, 2]


def test_views():
    d = SimpleDataset(list(range(10)))
    assert [list(d.shard(3, i)) for i in range(3)] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [len(d.shard(11, i)) for i in range(11)] == [1] * 10 + [0]
    for index in (3, -1):
        with pytest.raises(AssertionError, match="out of 3"):
            d.shard(3, index)
    assert list(d.take(3)) == [0, 1, 2] and len(d.take(None)) == 10 and len(d.take(20)) == 10
    assert list(d.filter(lambda x: x % 2)) == [1, 3, 5, 7, 9]
    assert list(d.sample(SequentialSampler(2, 5))) == [5, 6]
    view = d.sample(RandomSampler(10))
    assert list(view) == list(view) and sorted(view) == list(range(10))
    assert list(d.take(6).shard(2, 1).transform(lambda x: x * 10)) == [30, 40, 50]
    with pytest.raises(IndexError):
        d.take(3)[5]
    with pytest.raises(TypeError, match="list.*Sampler"):
        d.sample([1, 2])
    assert list(pickle.loads(pickle.dumps(d.take(4).shard(2, 0)))) == [0, 1]


@pytest.mark.parametrize("kind", [Dataset, Sampler])
def test_undefined(kind):
    with pytest.raises(NotImplementedError, match=f"{kind.__name__}.*__len__"):
        len(kind())


def test_samplers():
    assert list(SequentialSampler(3, 2)) == [2, 3, 4] and len(SequentialSampler(3)) == 3
    np.random.seed(0)
    assert list(RandomSampler(6)) == [5, 2, 1, 3, 0, 4]
    chosen = FilterSampler(lambda x: x > 4, SimpleDataset(list(range(8))))
    assert list(chosen) == [5, 6, 7] and len(chosen) == 3
    assert list(IntervalSampler(13, 3)) == [0, 3, 6, 9, 12, 1, 4, 7, 10, 2, 5, 8, 11]
    short = IntervalSampler(13, 3, rollover=False)
    assert list(short) == [0, 3, 6, 9, 12] and len(short) == 5 and len(IntervalSampler(13, 3)) == 13
    with pytest.raises(AssertionError, match="Interval 13.*length 3"):
        IntervalSampler(3, 13)


def test_batch_sampler():
    def rounds(last):
        b = BatchSampler(SequentialSampler(10), 4, last)
        return [(len(b), list(b)) for _ in range(3)]

    full = [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert rounds("keep") == [(3, [*full, [8, 9]])] * 3
    assert rounds("discard") == [(2, full)] * 3
    assert rounds("rollover") == [(2, full), (3, [[8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]), (2, full)]
    with pytest.raises(ValueError, match="'rollover', but got half"):
        BatchSampler(SequentialSampler(10), 4, "half")
    with pytest.raises(ValueError, match="batch_size"):
        BatchSampler(SequentialSampler(10), 0)


@pytest.mark.parametrize("batchify", [default_batchify_fn, default_mp_batchify_fn])
@pytest.mark.parametrize(
    "samples, dtype, shape",
    [
        ([1, 2], np.int64, (2,)),
        ([1.0, 2.0], np.float64, (2,)),
        ([np.float32(1), np.float32(2)], np.float32, (2,)),
        ([np.ones((2,), "uint8")] * 3, np.uint8, (3, 2)),
        ([[1, 2], [3, 4], [5, 6]], np.int64, (3, 2)),
        ([True, False], np.bool_, (2,)),
    ],
)
def test_batches_keep_dtypes(batchify, samples, dtype, shape):
    batch = batchify(samples)
    assert isinstance(batch, mx.nd.NDArray) and batch.dtype == dtype and batch.shape == shape
    assert batch.asnumpy().tolist() == np.asarray(samples).tolist()


def test_batches_of_tuples_and_arrays():
    a, (b, c) = default_batchify_fn([(1, (2, mx.nd.ones((2,)))), (4, (5, mx.nd.zeros((2,))))])
    assert a.asnumpy().tolist() == [1, 4] and b.asnumpy().tolist() == [2, 5]
    assert c.asnumpy().tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("samples, words", [([np.ones(2), np.ones(3)], r"\(2,\), \(3,\)"), ([None, None], "NoneType")])
def test_what_makes_no_batch(samples, words):
    with pytest.raises(ValueError, match=f"samples of .*{words}.*batchify_fn"):
        default_batchify_fn(samples)


def test_record_file_dataset(tmp_path):
    recordio = mx.recordio
    record = recordio.MXIndexedRecordIO(str(tmp_path / "r.idx"), str(tmp_path / "r.rec"), "w")
    for i in range(3):
        record.write_idx(i, bytes([i] * (i + 1)))
    record.close()
    d = RecordFileDataset(str(tmp_path / "r.rec"))
    assert len(d) == 3 and [d[i] for i in (2, 0)] == [b"\2\2\2", b"\0"]
