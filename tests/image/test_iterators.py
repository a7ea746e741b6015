"""Image iterators: sources, epochs, what subclasses override, errors that name the image."""

import os

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

from ..golden.image_cases import IMAGES, NAMES, OBJECTS

FILES = [(IMAGES / n).read_bytes() for n in NAMES] + [(IMAGES / NAMES[0]).read_bytes()]
SHAPE = 3, 20, 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five images as files, as records with and without an index, and as a list; four with objects."""
    folder = tmp_path_factory.mktemp("images")
    indexed = mx.recordio.MXIndexedRecordIO(str(folder / "a.idx"), str(folder / "a.rec"), "w")
    objects = mx.recordio.MXIndexedRecordIO(str(folder / "d.idx"), str(folder / "d.rec"), "w")
    for i, data in enumerate(FILES):
        (folder / f"{i}.png").write_bytes(data)
        indexed.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, float(i), i, 0), data))
    for i, label in enumerate(OBJECTS):
        objects.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, np.array(label, "float32"), i, 0), FILES[i]))
    indexed.close()
    objects.close()
    (folder / "a.lst").write_text("".join(f"{i}\t{float(10 + i)}\t{i}.png\n" for i in range(5)))
    return folder


def images(folder, kind, batch_size=2, **more):
    """An iterator over the five."""
    given = {
        "records": {"path_imgrec": str(folder / "a.rec")},
        "index": {"path_imgrec": str(folder / "a.rec"), "path_imgidx": str(folder / "a.idx")},
        "list": {"path_imglist": str(folder / "a.lst"), "path_root": str(folder)},
        "memory": {"imglist": [[float(i), f"{i}.png"] for i in range(5)], "path_root": str(folder)},
        "both": {
            "path_imgrec": str(folder / "a.rec"),
            "path_imgidx": str(folder / "a.idx"),
            "path_imglist": str(folder / "a.lst"),
        },
    }[kind]
    return mx.image.ImageIter(batch_size, SHAPE, **given, **more)


def labels(it):
    """Labels and pad of each batch of an epoch."""
    return [(*b.label[0].asnumpy().tolist(), b.pad) for b in it]


@pytest.mark.parametrize("kind", ["records", "index", "list", "memory", "both"])
def test_sources(folder, kind):
    it = images(folder, kind)
    shift = 10 if kind in ("list", "both") else 0
    wanted = [(shift, shift + 1, 0), (shift + 2, shift + 3, 0), (shift + 4, shift, 1)]
    assert labels(it) == wanted and labels(it) == []
    it.reset()
    batch = it.next()
    middle = mx.image.imread(str(folder / "1.png"))
    middle = mx.image.center_crop(middle, (20, 20))[0].asnumpy().transpose(2, 0, 1)
    np.testing.assert_array_equal(batch.data[0][1].asnumpy(), middle)
    assert it.provide_data == [("data", (2, *SHAPE))] and it.provide_label == [("softmax_label", (2,))]


@pytest.mark.parametrize(
    "handle, epochs",
    [
        ("pad", [[(0, 1, 0), (2, 3, 0), (4, 0, 1)]] * 2),
        ("discard", [[(0, 1, 0), (2, 3, 0)]] * 2),
        ("roll_over", [[(0, 1, 0), (2, 3, 0)], [(4, 0, 0), (1, 2, 0), (3, 4, 0)], [(0, 1, 0), (2, 3, 0)]]),
    ],
)
@pytest.mark.parametrize("kind", ["records", "memory"])
def test_last_batches(folder, kind, handle, epochs):
    it = images(folder, kind, last_batch_handle=handle)
    for wanted in epochs:
        assert labels(it) == wanted
        it.reset()


def test_a_hard_reset_forgets_what_is_left_over(folder):
    it = images(folder, "memory", last_batch_handle="roll_over")
    labels(it)
    it.hard_reset()
    assert labels(it)[0] == (0, 1, 0)


@pytest.mark.parametrize("kind", ["records", "memory"])
def test_batches_larger_than_the_data(folder, kind):
    assert labels(images(folder, kind, 12)) == [(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 7)]
    assert labels(images(folder, kind, 12, last_batch_handle="discard")) == []
    it, rounds = images(folder, kind, 12, last_batch_handle="roll_over"), []
    for _ in range(3):
        rounds.append(labels(it))
        it.reset()
    assert rounds == [[], [], [(0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 0)]]


def test_a_batch_that_is_kept_is_not_changed_by_the_next(folder):
    it = images(folder, "memory", last_batch_handle="roll_over")
    kept = [(b, b.data[0].asnumpy(), b.label[0].asnumpy()) for b in it]
    it.reset()
    kept += [(b, b.data[0].asnumpy(), b.label[0].asnumpy()) for b in it]
    for batch, data, label in kept:
        np.testing.assert_array_equal(batch.data[0].asnumpy(), data)
        np.testing.assert_array_equal(batch.label[0].asnumpy(), label)


def test_order_and_parts(folder):
    it = images(folder, "index", 1, shuffle=True)
    seen = []
    for _ in range(8):
        seen.append([b.label[0].asscalar() for b in it])
        it.reset()
    assert all(sorted(s) == [0, 1, 2, 3, 4] for s in seen) and len({tuple(s) for s in seen}) > 1
    parts = [[b.label[0].asscalar() for b in images(folder, "index", 1, num_parts=2, part_index=i)] for i in range(2)]
    assert parts == [[0, 1], [2, 3]]


def test_subclasses_change_each_step(folder):
    class Own(mx.image.ImageIter):
        def next_sample(self):
            label, data = super().next_sample()
            return label + 100, data

        def read_image(self, fname):
            return super().read_image(fname.replace("9.png", "0.png"))

        def imdecode(self, s):
            return 255 - super().imdecode(s)

        def check_valid_image(self, data):
            if data[0].shape[0] == 61:  # the second
                raise RuntimeError("too high")

        def augmentation_transform(self, data):
            return super().augmentation_transform(data) * 2

        def postprocess_data(self, datum):
            return super().postprocess_data(datum) + 1

    it = Own(2, SHAPE, path_root=str(folder), imglist=[[i, f"{i}.png"] for i in (9, 1, 2)])
    batch = it.next()
    assert batch.label[0].asnumpy().tolist() == [109, 102]
    middle = (
        mx.image.center_crop(mx.image.imread(str(folder / "0.png")), (20, 20))[0]
        .asnumpy()
        .transpose(2, 0, 1)
        .astype("float32")
    )
    np.testing.assert_array_equal(batch.data[0][0].asnumpy(), (255 - middle) * 2 + 1)


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({}, "path_imgrec, path_imglist or imglist"),
        ({"path_imgrec": "A.rec", "shuffle": True}, "give path_imgidx"),
        ({"path_imgrec": "A.rec", "num_parts": 2}, "give path_imgidx"),
        ({"path_imgrec": "missing.rec"}, "missing.rec"),
        (
            {"path_imgrec": "A.rec", "path_imgidx": "A.idx", "num_parts": 2, "part_index": 2},
            "part_index must be from 0 to num_parts - 1 = 1",
        ),
        ({"path_imgrec": "A.rec", "path_imgidx": "A.idx", "num_parts": 9}, "5 images cannot be split into 9 parts"),
        ({"imglist": []}, "there is no image"),
        ({"imglist": [3]}, "entry 1 of imglist is 3"),
        ({"imglist": [["x.png"]]}, "entry 1 of imglist"),
        ({"imglist": [["a", "x.png"]]}, "entry 1 of imglist"),
        ({"path_imglist": "bad.lst"}, "line 2"),
        ({"path_imglist": "bare.lst"}, "has no label"),
        ({"path_imgrec": "A.rec", "last_batch_handle": "keep"}, "last_batch_handle"),
        ({"path_imgrec": "A.rec", "dtype": "uint8"}, "dtype"),
        ({"path_imgrec": "A.rec", "data_shape": (20, 20)}, "data_shape"),
        ({"path_imgrec": "A.rec", "data_shape": (1, 20, 20)}, "3 channels"),
        ({"path_imgrec": "A.rec", "batch_size": 0}, "batch_size"),
    ],
)
def test_what_does_not_fit_is_refused(folder, kwargs, text):
    (folder / "bad.lst").write_text("0\t1.0\t0.png\n1\tx\t1.png\n")
    (folder / "bare.lst").write_text("0 1.0 0.png\n1\t1.png\n"[12:])
    given = {k: str(folder / v.replace("A.", "a.")) if k.startswith("path") else v for k, v in kwargs.items()}
    with pytest.raises(MXNetError, match=text):
        mx.image.ImageIter(**{"batch_size": 2, "data_shape": SHAPE, **given})
    with pytest.raises(TypeError, match="colour"):
        mx.image.ImageIter(2, SHAPE, path_imgrec=str(folder / "a.rec"), colour=1)


def test_images_that_do_not_fit_are_named(folder):
    (folder / "bad.png").write_bytes(b"nothing")
    it = mx.image.ImageIter(1, SHAPE, path_root=str(folder), imglist=[[0, "0.png"], [1, "bad.png"]])
    it.next()
    with pytest.raises(RuntimeError, match=r"ImageIter: 'bad.png', the 2. of 2 images, cannot be decoded: .*7 bytes"):
        it.next()
    it = mx.image.ImageIter(2, SHAPE, path_root=str(folder), imglist=[[0, "0.png"], [1, "gone.png"]])
    with pytest.raises(FileNotFoundError, match=r"gone.png"):
        it.next()
    with pytest.raises(
        MXNetError, match=r"ImageIter: '0.png', the 1. of 5 images, has a label of 1 numbers, label_width is 2"
    ):
        images(folder, "memory", label_width=2).next()
    with pytest.raises(
        MXNetError, match=r"record 0 of '.*a.rec', the 1. in the order of the file, is \(3, 40, 60\) after augmentation"
    ):
        images(folder, "records", aug_list=[]).next()
    it = mx.image.ImageIter(
        2, SHAPE, path_imgrec=str(folder / "a.rec"), path_imgidx=str(folder / "a.idx"), imglist=[[0, "0.png"]]
    )
    with pytest.raises(KeyError, match="is not in the list, which names 1 images"):
        it.next()


# -- objects


def objects(folder, batch_size=2, **more):
    return mx.image.ImageDetIter(
        batch_size, SHAPE, path_imgrec=str(folder / "d.rec"), path_imgidx=str(folder / "d.idx"), **more
    )


def test_objects_are_padded_with_rows_of_minus_one(folder):
    it = objects(folder)
    assert it.label_shape == (3, 5) and it.provide_label == [("label", (2, 3, 5))]
    label = it.next().label[0].asnumpy()
    np.testing.assert_allclose(label[1], [[0, 0, 0.2, 0.5, 0.7], [1, 0.1, 0.2, 0.6, 0.7], [-1] * 5], rtol=1e-6)
    assert [b.pad for b in it] == [0]


def test_images_without_an_object_of_a_class_are_left_out(folder):
    """As in MXNet; beside others such rows stay."""
    none, one = [-1, 0.1, 0.1, 0.5, 0.5], [1, 0.2, 0.2, 0.6, 0.6]
    labels = [[2, 5, *none, *none], [2, 5, *one], [2, 5, *none, *one]]
    it = mx.image.ImageDetIter(1, SHAPE, path_root=str(folder), imglist=[[x, "0.png"] for x in labels])
    assert [b.label[0].asnumpy()[0, :, 0].tolist() for b in it] == [[1, -1], [-1, 1]]


def test_labels_that_padding_would_fill_memory_with_are_refused(folder):
    """One has many objects, the other a long one: a batch would have the product of both."""
    n = 2000
    many, long = [2, 5, *[0, 0.1, 0.1, 0.5, 0.5] * n], [2, 5 * n, 0, 0.1, 0.1, 0.5, 0.5, *[0] * (5 * n - 5)]
    for labels in ([many, many], [long, long]):
        it = mx.image.ImageDetIter(2, SHAPE, path_root=str(folder), imglist=[[x, "0.png"] for x in labels])
        assert it.next().label[0].size == 2 * 5 * n
    with pytest.raises(ValueError, match="labels have up to 2000 objects, and objects up to 10000 numbers"):
        mx.image.ImageDetIter(2, SHAPE, path_root=str(folder), imglist=[[x, "0.png"] for x in (many, long)])


def test_shapes_of_labels(folder):
    it, other = objects(folder), objects(folder)
    it.reshape(label_shape=(6, 5))
    assert (
        it.sync_label_shape(other, verbose=True) is other
        and other.label_shape == (6, 5) == it.next().label[0].shape[1:]
    )
    for shape, text in (((1, 5), "6 objects do not fit"), ((9, 6), "5 numbers"), ((9,), "label_shape must be")):
        with pytest.raises(ValueError, match=text):
            it.reshape(label_shape=shape)
    with pytest.raises(TypeError, match="ImageDetIter is needed"):
        it.sync_label_shape(3)
    it.reshape((3, 24, 24))
    with pytest.raises(ValueError, match=r"is \(3, 20, 20\) after augmentation"):
        it.next()


@pytest.mark.parametrize(
    "label, text",
    [
        ([2, 5], "a label of 2 numbers"),
        ([2], "1 numbers"),
        ([0, 0.1, 0.2, 0.5, 0.6], "begins with"),
        ([2, 4, 0, 0.1, 0.2, 0.5], "6 numbers"),
        ([2, 5, 0, 0.1, 0.2, 0.5, 0.6, 7], "8 numbers"),
        ([2, 5, 0, 0.5, 0.2, 0.1, 0.6], "no object"),
        ([float("nan")] * 7, "7 numbers"),
        ([2, 5, 0, 0.1, 0.2, float("nan"), 0.6], "no object"),
    ],
)
def test_labels_that_are_none(folder, label, text):
    with pytest.raises(RuntimeError, match=f"ImageDetIter: '0.png', the 1. of 1 images, has .*{text}"):
        mx.image.ImageDetIter(1, SHAPE, path_root=str(folder), imglist=[[label, "0.png"]])


def test_images_that_lose_their_objects_are_left_out(folder):
    class Lose(mx.image.DetAugmenter):
        def __call__(self, src, label):
            return src, label[:0] if len(label) == 2 else label

    it = objects(folder, 3, aug_list=[Lose(), mx.image.DetBorrowAug(mx.image.ForceResizeAug((20, 20)))])
    assert [(b.label[0][:, :, 0].asnumpy() >= 0).sum(1).tolist() for b in it] == [[1, 3, 1]]


def test_drawing(folder):
    plain = list(objects(folder).draw_next(color=(255, 0, 0), thickness=1))
    assert len(plain) == 4 and all(p.shape == (20, 20, 3) and p.dtype == np.uint8 for p in plain)
    np.testing.assert_array_equal(plain[0][4, 1:10], [[255, 0, 0]] * 9)  # the upper edge, at 0.2 of the height
    named = list(
        objects(folder, mean=True, std=True).draw_next(
            color=(255, 0, 0), thickness=1, mean=True, std=True, id2labels={0: "cat"}
        )
    )
    assert np.abs(named[0][0].astype(int) - plain[0][0]).max() <= 1 and (named[0] != plain[0]).any()
    with pytest.raises(ValueError, match="color"):
        next(objects(folder).draw_next(color=3))


@pytest.mark.parametrize(
    "kind, more", [("memory", {}), ("list", {}), ("memory", {"dtype": "int32"}), ("list", {"dtype": "float64"})]
)
def test_labels_have_their_dtype(folder, kind, more):
    it = images(folder, kind, **more)
    assert {label.dtype for label, _ in it.imglist.values()} == {np.dtype(more.get("dtype", "float32")).type}


def test_whole_numbers_as_labels(folder):
    it = mx.image.ImageIter(2, SHAPE, imglist=[[1.7, "0.png"], [3, "1.png"]], path_root=str(folder), dtype="int32")
    assert it.next().label[0].asnumpy().tolist() == [1, 3]
    with pytest.raises(ValueError, match="entry 1 of imglist"):
        mx.image.ImageIter(2, SHAPE, imglist=[[float("inf"), "0.png"]], path_root=str(folder), dtype="int32")


def test_subclasses_change_batches(folder):
    class Shifted(mx.image.ImageIter):
        def _batchify(self, batch_data, batch_label, start=0):
            count = super()._batchify(batch_data, batch_label, start)
            batch_label += 10
            return count

    it = Shifted(2, SHAPE, path_imgrec=str(folder / "a.rec"), last_batch_handle="discard")
    assert labels(it) == [(10, 11, 0), (12, 13, 0)]


def test_a_root_that_is_no_name_of_a_folder():
    with pytest.raises(mx.MXNetError, match="ImageIter: path_root must be a non-empty string or a path, not bytes"):
        mx.image.ImageIter(1, SHAPE, path_root=b"/data", imglist=[[1.0, "a.png"]])


def test_a_missing_file_is_named_with_its_place_in_the_list(tmp_path):
    (tmp_path / "l.lst").write_text("0\t1\ta.jpg\n1\t1\tb.jpg\n")
    it = mx.image.ImageIter(1, (3, 4, 4), path_imglist=str(tmp_path / "l.lst"), path_root=str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"ImageIter: 'a.jpg', the 1. of 2 images of the list: cannot read"):
        it.next()


@pytest.mark.parametrize(
    "line, text",
    [
        ("0\t2\tb.jpg", "the number 0 stands in an earlier line, too"),
        (f"{2**64}\t2\tb.jpg", "the number has more than 64 bits"),
    ],
)
def test_numbers_of_a_list_that_are_refused(tmp_path, line, text):
    """Images of one number would replace each other; long numbers of one hash would take hours to tell apart."""
    (tmp_path / "l.lst").write_text(f"0\t1\ta.jpg\n{line}\n")
    with pytest.raises(ValueError, match=f"ImageIter: .*line 2: {text}"):
        mx.image.ImageIter(1, (3, 4, 4), path_imglist=str(tmp_path / "l.lst"), path_root=str(tmp_path))


def test_labels_beyond_the_dtype(tmp_path):
    (tmp_path / "l.lst").write_text("0\t1\ta.jpg\n1\t1e300\tb.jpg\n")
    with pytest.raises(ValueError, match="ImageIter: .*line 2: overflow"):
        mx.image.ImageIter(1, (3, 4, 4), path_imglist=str(tmp_path / "l.lst"), path_root=str(tmp_path))
    with pytest.raises(ValueError, match=r"ImageIter: entry 1 of imglist is .*overflow"):
        mx.image.ImageIter(1, (3, 4, 4), imglist=[[-1e300, "a.jpg"]], path_root=str(tmp_path))


@pytest.mark.parametrize("label", ["inf", "nan", "1e30", "1e400", "3000000000"])
def test_labels_beyond_whole_numbers(tmp_path, label):
    (tmp_path / "l.lst").write_text(f"0\t1\ta.jpg\n1\t{label}\tb.jpg\n")
    with pytest.raises(ValueError, match=r"ImageIter: .*l\.lst', line 2: ") as told:
        mx.image.ImageIter(1, (3, 4, 4), path_imglist=str(tmp_path / "l.lst"), path_root=str(tmp_path), dtype="int32")
    assert isinstance(told.value, mx.MXNetError)


@pytest.mark.parametrize("kind", ["ImageIter", "ImageDetIter", "ImageDataLoader", "ImageBboxDataLoader"])
def test_names_in_lists_are_any_bytes(tmp_path, kind):
    """As ``im2rec --list`` writes them of folders that have them."""
    objects = "Det" in kind or "Bbox" in kind
    label = b"2\t5\t1\t0.1\t0.1\t0.8\t0.8" if objects else b"3"
    names = [b"caf\xe9.png", "café.png".encode(), b"\xff\x85 \xa0.png"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(FILES[0])
    (tmp_path / "a.lst").write_bytes(b"".join(b"%d\t%s\t%s\r\n" % (i, label, n) for i, n in enumerate(names)))
    (tmp_path / "b.lst").write_bytes(b"7\t%s\tcaf\xe9s.png\n" % label)
    make = getattr(mx.image, kind, None) or getattr(mx.gluon.contrib.data.vision, kind)
    images = [*make(1, SHAPE, path_imglist=str(tmp_path / "a.lst"), path_root=str(tmp_path))]
    assert len(images) == 3
    with pytest.raises(FileNotFoundError, match=r"caf\\udce9s\.png") as e:
        next(iter(make(1, SHAPE, path_imglist=str(tmp_path / "b.lst"), path_root=str(tmp_path))))
    assert str(e.value).isprintable()
