"""`ImageDetRecordIter`: labels of any length, and the batches they make."""

from pathlib import Path

import numpy as np
import pytest

import mxcore as mx
from mxcore_io_rec.det_iter import ImageDetRecordIter
from mxcore_io_rec.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img

GOLDEN = Path(__file__).parent / "golden"
REC = str(GOLDEN / "objects.rec")


def detection(path=REC, **parameters):
    return ImageDetRecordIter(**{"path_imgrec": path, "data_shape": (3, 16, 16), "batch_size": 2, **parameters})


def test_the_face_of_a_data_iter():
    it = mx.io.ImageDetRecordIter(path_imgrec=REC, data_shape=(3, 16, 16), batch_size=2)
    batch = it.next()
    assert it.provide_label[0] == ("softmax_label", (2, 16)) and batch.label[0].shape == (2, 16)
    assert batch.data[0].shape == (2, 3, 16, 16) and batch.pad == 0 and batch.index.tolist() == [0, 1]


def test_rows_begin_with_the_image_and_end_in_padding():
    (_, (labels,), _, _) = detection(label_pad_value=-3).next_arrays()
    assert labels[0, :7].tolist() == [3, 16, 16, 7, 2, 5, 1] and (labels[0, 11:] == -3).all()
    assert labels[1, 3] == 12 and labels[1, 11] == 3


def test_round_batch():
    it = detection(batch_size=3)
    assert it.next_arrays()[2:][0] == 1
    it.reset()
    assert it.next_arrays()[3].tolist() == [1, 0, 1]


def test_types_and_resuming():
    it = detection(dtype="uint8", batch_size=1, rand_mirror_prob=0.5, shuffle=True)
    assert it.next_arrays()[0][0].dtype == np.uint8
    other = detection(dtype="uint8", batch_size=1, rand_mirror_prob=0.5, shuffle=True)
    other.load_state_dict(it.state_dict())
    np.testing.assert_array_equal(it.next_arrays()[0][0], other.next_arrays()[0][0])


def test_labels_from_a_list(tmp_path):
    lst = tmp_path / "a.lst"
    rows = [[2, 5, 9, 0.1, 0.1, 0.2, 0.2], [2, 5, 8, 0.1, 0.1, 0.2, 0.2]]
    lst.write_text("".join(f"{i}\t" + "\t".join(map(str, row)) + f"\t{i}.png\n" for i, row in enumerate(rows)))
    (_, (labels,), _, _) = detection(path_imglist=str(lst)).next_arrays()
    assert labels.shape == (2, 11) and labels[:, 6].tolist() == [9, 8]


@pytest.mark.parametrize(
    "parameters, word",
    [
        ({"label_pad_width": 8}, "12 labels, but label_pad_width is 8"),
        ({"label_width": 7}, "12 labels, but label_width is 7"),
        ({"mean_img": "x", "resize_mode": "fit"}, "resize_mode"),
    ],
)
def test_wrong_parameters(parameters, word):
    with pytest.raises(ValueError, match=word):
        detection(**parameters).next_arrays()


@pytest.mark.parametrize("width", [1 << 46, 1 << 61])
def test_a_batch_without_memory_says_so(width):
    with pytest.raises(mx.MXNetError, match="ImageDetRecordIter: no memory for a batch, images .* and labels") as e:
        detection(label_pad_width=width).next_arrays()
    assert isinstance(e.value, MemoryError)


def test_records_without_objects_are_told(tmp_path):
    path = tmp_path / "a.rec"
    with MXRecordIO(path, "w") as record:
        record.write(pack_img(IRHeader(0, 3, 0, 0), np.zeros((8, 8, 3), np.uint8)))
    with pytest.raises(ValueError, match=r"record 0 of .*a\.rec' at offset 0: a detection label"):
        detection(str(path), batch_size=1).next_arrays()


def test_a_damaged_record_does_not_hide_the_longest_label(tmp_path):
    path = tmp_path / "a.rec"
    label = [2, 5, 1, 0.1, 0.1, 0.6, 0.7]
    with MXIndexedRecordIO(tmp_path / "a.idx", path, "w") as record:
        for i in range(3):
            record.write_idx(i, pack_img(IRHeader(0, label, i, 0), np.zeros((8, 8, 3), np.uint8)))
        second = record.idx[1]
    data = bytearray(path.read_bytes())
    data[second] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="record 1 .*damaged"):
        detection(str(path), batch_size=3)
    it = detection(str(path), batch_size=3, on_error="skip")
    _, (labels,), pad, index = it.next_arrays()
    assert labels.shape == (3, 11) and pad == 1 and index[:2].tolist() == [0, 2]
    it.close()
    with MXRecordIO(path, "w") as record:
        record.write(pack(IRHeader(0, label, 0, 0), b"no image"))
    it = detection(str(path), batch_size=1, on_error="skip")
    with pytest.raises(StopIteration):
        it.next_arrays()
    it.close()
