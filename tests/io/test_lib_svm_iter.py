"""`LibSVMIter`: sparse rows and labels, epochs, parts, errors with file and line; unknown parameters."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

ROWS = "1 0:0.5 2:1.25\n-2 \n3.5 1:2 3:4\n4 0:1 # more\n\n# none\n5 qid:3 2:-1e-1\n"
DATA = [[0.5, 0, 1.25, 0], [0, 0, 0, 0], [0, 2, 0, 4], [1, 0, 0, 0], [0, 0, -0.1, 0]]
LABELS = [1, -2, 3.5, 4, 5]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(ROWS)
    return path


def made(path, **more):
    return mx.io.LibSVMIter(**{"data_libsvm": str(path), "data_shape": (4,), "batch_size": 2, **more})


def test_epochs(path):
    """The last batch is filled from the next epoch, which starts behind those rows."""
    it = made(path)
    assert [tuple(d.shape) for d in it.provide_data + it.provide_label] == [(2, 4), (2,)]
    for epoch in ([[0, 1], [2, 3], [4, 0]], [[1, 2], [3, 4]]):
        for rows, batch in zip(epoch, list(it), strict=True):
            (data,) = batch.data
            assert (
                data.stype == "csr"
                and data.dtype == np.float32
                and batch.index.tolist() == rows
                and batch.pad == (rows == [4, 0])
            )
            data.check_format()
            np.testing.assert_allclose(data.asnumpy(), np.array(DATA)[rows], rtol=1e-6)
            assert batch.label[0].asnumpy().tolist() == [LABELS[r] for r in rows]
        it.reset()


def test_sparse_labels_parts_and_folders(path):
    other = path.with_name("l.svm")
    other.write_text("0 0:1\n0 1:2\n0 0:3 1:4\n0\n0 1:6\n")
    batch = made(path, label_libsvm=str(other), label_shape=(2,)).next()
    assert batch.label[0].stype == "csr" and batch.label[0].asnumpy().tolist() == [[1, 0], [0, 2]]
    assert [[b.label[0].asscalar() for b in made(path, batch_size=1, num_parts=2, part_index=i)] for i in range(2)] == [
        [1, -2],
        [3.5, 4, 5],
    ]
    folder = path.with_name("folder")
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(ROWS)
    assert made(folder, batch_size=10).next().label[0].asnumpy().tolist() == LABELS * 2


def test_it_trains(path):
    it = made(path, batch_size=5)
    batch = it.next()
    w = mx.nd.zeros((4, 1))
    w.attach_grad()
    with mx.autograd.record():
        loss = ((mx.nd.dot(batch.data[0], w)[:, 0] - batch.label[0]) ** 2).sum()
    loss.backward()
    np.testing.assert_allclose(w.grad.asnumpy()[:, 0], -2 * np.array(DATA).T @ LABELS, rtol=1e-5)


@pytest.mark.parametrize(
    "text, match",
    [
        ("1 0:1\n2 x:1\n", "line 2: 'x:1' is no column below 4"),
        ("1 4:1\n", "'4:1' is no column below 4"),
        ("1 -1:1\n", "'-1:1'"),
        ("a 0:1\n", "line 1"),
        ("1 0:b\n", "line 1"),
        ("\n# nothing\n", "holds no row"),
        ("1 ٣:1\n", "line 1"),
        ("1 99999999999999999999999:1\n", "no column below 4"),
        ("1_0 0:1\n", "'1_0' is no number"),
        ("1 0:1\r2 0:1_0", "line 2: '1_0' is no number"),
    ],
)
def test_lines_that_are_none(tmp_path, text, match):
    (tmp_path / "bad.svm").write_text(text, encoding="utf-8")
    with pytest.raises(MXNetError, match=match) as caught:
        made(tmp_path / "bad.svm")
    assert "bad.svm" in str(caught.value)


@pytest.mark.parametrize(
    "more, match",
    [
        ({"dtype": "float64"}, "dtype must be float32"),
        ({"round_batch": False}, "round_batch must be True"),
        ({"data_shape": (2, 2)}, r"\(columns,\)"),
        ({"num_parts": 2, "part_index": 2}, "none of the 2 parts"),
        ({"data_libsvm": "/no/such.svm"}, "such.svm"),
        ({"label_libsvm": "SHORT"}, "only 1"),
    ],
)
def test_what_does_not_fit_is_refused(path, more, match):
    path.with_name("short.svm").write_text("0 0:1\n")
    with pytest.raises(MXNetError, match=match):
        made(path, **{k: str(path.with_name("short.svm")) if v == "SHORT" else v for k, v in more.items()})


def test_unknown_parameters_are_left_out_with_one_warning(path, tmp_path):
    """MXNet's iterators leave them out; published programs give some of each kind."""
    with pytest.warns(UserWarning, match=r"^LibSVMIter has no parameter 'input_shape', 'quiet': left out$") as told:
        made(path, input_shape=(4,), quiet=True)
    assert len(told) == 1
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    with pytest.warns(UserWarning, match="CSVIter has no parameter 'shuffle'"):
        mx.io.CSVIter(data_csv=str(tmp_path / "a.csv"), data_shape=(2,), batch_size=1, shuffle=True)
    images, labels = tmp_path / "i", tmp_path / "l"
    images.write_bytes(bytes.fromhex("00000803000000020000000200000002") + bytes(8))
    labels.write_bytes(bytes.fromhex("0000080100000002") + bytes(2))
    with pytest.warns(UserWarning, match="MNISTIter has no parameter 'data_shape', 'input_shape'"):
        it = mx.io.MNISTIter(image=str(images), label=str(labels), batch_size=2, data_shape=(1, 2, 2), input_shape=(4,))
    assert it.next().data[0].shape == (2, 1, 2, 2)


def test_marks_of_a_text_and_weights_of_rows(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"\xef\xbb\xbf1:0.5 0:1\n2:3 1:2\n")
    batch = mx.io.LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=2).next()
    assert batch.label[0].asnumpy().tolist() == [1, 2]
    assert batch.data[0].asnumpy().tolist() == [[1, 0, 0], [0, 2, 0]]
    path.write_bytes(b"1:x 0:1\n")
    with pytest.raises(MXNetError, match="line 1"):
        mx.io.LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=1)
