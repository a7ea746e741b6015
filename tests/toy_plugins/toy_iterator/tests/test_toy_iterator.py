import pytest

import mxcore as mx


def batches(it):
    return [(b.data[0].asnumpy().tolist(), b.label[0].asnumpy().tolist()) for b in it]


def test_batches_and_epochs():
    it = mx.io.ToyIterator([0, 1, 2, 3, 4, 5], window=2, batch_size=2)
    want = [([[0, 1], [1, 2]], [2, 3]), ([[2, 3], [3, 4]], [4, 5])]
    assert batches(it) == want and batches(it) == []
    it.reset()
    assert batches(it) == want


def test_what_it_provides_is_what_comes():
    it = mx.io.ToyIterator(range(10), window=3, batch_size=4)
    batch = next(it)
    assert [d.shape for d in it.provide_data] == [a.shape for a in batch.data] == [(4, 3)]
    assert [d.shape for d in it.provide_label] == [a.shape for a in batch.label] == [(4,)]


def test_inside_other_iterators():
    want = batches(mx.io.ToyIterator(range(8), 2, 2))
    assert batches(mx.io.PrefetchingIter(mx.io.ToyIterator(range(8), 2, 2))) == want
    assert len(batches(mx.io.ResizeIter(mx.io.ToyIterator(range(8), 2, 2), 5))) == 5


def test_a_series_that_is_too_short():
    with pytest.raises(ValueError, match="holds no batch"):
        mx.io.ToyIterator([1, 2], window=2)
