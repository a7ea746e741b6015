"""Data sets and loaders of ``gluon.contrib.data``: texts, and images with boxes."""

import pickle
import random
import zipfile
import zlib

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.gluon import nn
from mxcore.gluon.contrib import estimator
from mxcore.gluon.contrib.data import text, vision
from mxcore.gluon.contrib.data.vision.dataloader import BboxLabelTransform
from mxcore.gluon.contrib.data.vision.transforms import bbox
from mxcore.gluon.contrib.data.vision.transforms.bbox import utils
from mxcore.gluon.data.vision import transforms

cv2 = pytest.importorskip("cv2")


# -- texts -----------------------------------------------------------------------------------------------------


def some_text():
    numbers = np.random.RandomState(0).zipf(1.5, 3000) % 50
    return (
        "\n".join(" " + " ".join(f"w{n}" for n in row) + " " for row in np.split(numbers, range(7, 3000, 11)))
        + "\n\n = end = \n"
    )


def digest(arrays):
    return zlib.crc32(np.stack([a.asnumpy() for a in arrays]).tobytes())


@pytest.mark.parametrize(
    "seq_len, count, words, labels", [(35, 93, 3682443430, 3138834873), (7, 468, 138508459, 3261036062)]
)
def test_texts_are_mxnets(seq_len, count, words, labels, tmp_path):
    # The figures are MXNet 1.9.1's, of the same file.
    (tmp_path / "wiki.train.tokens").write_text(some_text())
    data = text.WikiText2(tmp_path, seq_len=seq_len)
    assert len(data) == count and data[0][0].dtype == np.int32 and data[0][1].shape == (seq_len,)
    assert (digest(x for x, _ in data), digest(y for _, y in data)) == (words, labels)
    assert len(data.vocabulary) == 54 and data.vocabulary.idx_to_token[:4] == ["<unk>", "<eos>", "w1", "w2"]
    assert data.frequencies["w1"] == 1175 and data.frequencies["<eos>"] == 0


@pytest.mark.parametrize("kind, name", [(text.WikiText2, "wikitext-2"), (text.WikiText103, "wikitext-103")])
def test_texts_come_out_of_the_archive(kind, name, nowhere, publish):
    with zipfile.ZipFile(nowhere / f"{name}-v1.zip", "w") as z:
        z.writestr("../evil", "x")
        for part, content in (("train", "a b a\r\nc\n"), ("valid", "a d\n"), ("test", "é\n")):
            z.writestr(f"{name}/wiki.{part}.tokens", content)
    publish(kind, nowhere)
    train = kind(root=str(nowhere), seq_len=2)
    valid = kind(root=str(nowhere), segment="validation", vocab=train.vocabulary, seq_len=1)
    test = kind(root=str(nowhere), segment="test", seq_len=1)
    assert train.vocabulary.idx_to_token == ["<unk>", "<eos>", "a", "b", "c"]
    assert [[part.asnumpy().tolist() for part in sample] for sample in train] == [[[2, 3], [3, 2]], [[2, 1], [1, 4]]]
    assert [[part.asnumpy().tolist() for part in sample] for sample in valid] == [[[2], [0]], [[0], [1]]]
    assert valid.vocabulary is train.vocabulary and test.vocabulary.idx_to_token[2] == "é"
    assert not (nowhere.parent / "evil").exists()


def test_texts_that_are_not_there_are_explained(nowhere, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"WikiText2: .*wikitext-2-v1.zip is not there and cannot be downloaded.*root="
    ):
        text.WikiText2(root=str(nowhere / "text"))
    monkeypatch.setenv("MXNET_HOME", str(nowhere / "home"))
    with pytest.raises(FileNotFoundError, match="home.datasets.wikitext-103.wikitext-103-v1.zip"):
        text.WikiText103()


def test_archives_that_unfold_too_far_are_refused(nowhere, monkeypatch, publish):
    with zipfile.ZipFile(nowhere / "wikitext-2-v1.zip", "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("wiki.train.tokens", " " * 5000)
    publish(text.WikiText2, nowhere)
    monkeypatch.setenv("MXCORE_MAX_UNPACKED_BYTES", "4000")
    with pytest.raises(ValueError, match="wikitext-2-v1.zip"):
        text.WikiText2(nowhere)
    assert not (nowhere / "wiki.train.tokens").exists()


def test_damaged_texts_are_named(nowhere, publish):
    (nowhere / "wikitext-2-v1.zip").write_bytes(b"PK broken")
    publish(text.WikiText2, nowhere)
    with pytest.raises(ValueError, match="wikitext-2-v1.zip is damaged"):
        text.WikiText2(nowhere)
    with zipfile.ZipFile(nowhere / "wikitext-2-v1.zip", "w") as z:
        z.writestr("wiki.train.tokens", "a\n")
    publish(text.WikiText2, nowhere)
    with pytest.raises(ValueError, match="lacks wiki.test.tokens, wiki.valid.tokens"):
        text.WikiText2(nowhere)
    assert [path.name for path in nowhere.iterdir()] == ["wikitext-2-v1.zip"]
    (nowhere / "wiki.train.tokens").write_text("a\n")
    with pytest.raises(ValueError, match="wiki.train.tokens has 2 words, .* seq_len=35 needs"):
        text.WikiText2(nowhere)
    (nowhere / "wiki.test.tokens").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="wiki.test.tokens is no text in UTF-8"):
        text.WikiText2(nowhere, segment="test")


@pytest.mark.parametrize(
    "given, kind, words",
    [
        ({"segment": "valid"}, KeyError, "segment must be one of train, validation, test, got 'valid'"),
        ({"seq_len": 0}, ValueError, "seq_len must be"),
        ({"seq_len": "5"}, ValueError, "got '5'"),
        ({"vocab": {"a": 1}}, TypeError, "vocab must be .* got dict"),
        ({"root": 3}, TypeError, "WikiText2: root"),
    ],
)
def test_bad_texts(given, kind, words, tmp_path):
    (tmp_path / "wiki.train.tokens").write_text("a b\n" * 40)
    with pytest.raises(kind, match=words) as told:
        text.WikiText2(**{"root": tmp_path, **given})
    assert isinstance(told.value, MXNetError)


# -- images ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Seven JPEGs, a list of them, and a record file, with objects for labels."""
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.RandomState(0)
    names, labels = [], []
    with (folder / "list.lst").open("w") as lines:
        records = mx.recordio.MXIndexedRecordIO(str(folder / "d.idx"), str(folder / "d.rec"), "w")
        plain = mx.recordio.MXIndexedRecordIO(str(folder / "p.idx"), str(folder / "p.rec"), "w")
        for i in range(7):
            image = cv2.resize(
                chance.randint(0, 255, (5, 6, 3)).astype("uint8"), (60 + i, 48), interpolation=cv2.INTER_CUBIC
            )
            cv2.imwrite(str(folder / f"{i}.jpg"), image[:, :, ::-1])
            label = [2.0, 5.0, float(i), 0.25, 0.5, 0.75, 1.0] + [9.0, 0.0, 0.0, 0.5, 0.5] * (i % 3)
            names.append(f"{i}.jpg")
            labels.append(label)
            lines.write("\t".join(map(str, [i, *label, f"{i}.jpg"])) + "\n")
            records.write_idx(i, mx.recordio.pack_img(mx.recordio.IRHeader(0, np.array(label, "float32"), i, 0), image))
            plain.write_idx(i, mx.recordio.pack_img(mx.recordio.IRHeader(0, float(i), i, 0), image))
        records.close()
        plain.close()
    return folder, names, labels


def sources(pictures):
    folder, names, labels = pictures
    in_memory = [[*label, name] for label, name in zip(labels, names)]
    return {
        "rec": {"path_imgrec": str(folder / "d.rec")},
        "lst": {"path_imglist": str(folder / "list.lst"), "path_root": str(folder)},
        "list": {"imglist": in_memory, "path_root": str(folder)},
    }


@pytest.mark.parametrize("workers", [0, 2])
def test_images_in_batches(pictures, workers):
    folder, names, _ = pictures
    source = {"imglist": [[float(i), name] for i, name in enumerate(names)], "path_root": str(folder)}
    loader = vision.ImageDataLoader(3, (3, 20, 24), resize=30, mean=True, std=True, num_workers=workers, **source)
    by_hand = transforms.Compose(
        [
            transforms.Resize(30, keep_ratio=True, interpolation=2),
            transforms.CenterCrop((24, 20), 2),
            transforms.ToTensor(),
            transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    assert len(loader) == 3
    batches = list(loader)
    assert [x.shape for x, _ in batches] == [(3, 3, 20, 24)] * 2 + [(1, 3, 20, 24)]
    assert [y.asnumpy().tolist() for _, y in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    found = np.concatenate([x.asnumpy() for x, _ in batches])
    want = np.stack([by_hand(mx.image.imread(str(folder / name))).asnumpy() for name in names])
    np.testing.assert_allclose(found, want, atol=1e-6)
    again = vision.ImageDataLoader(
        7, (3, 20, 24), str(folder / "p.rec"), resize=30, dtype="int32", num_parts=2, part_index=1
    )
    assert [y.asnumpy().tolist() for _, y in again] == [[4, 5, 6]]


@pytest.mark.parametrize("more", [{}, {"num_workers": 1, "thread_pool": True}], ids=["here", "thread"])
def test_labels_of_a_list_are_the_takers(pictures, more):
    def halves(samples):
        for _, label in samples:
            label *= 0.5
        return mx.nd.array(np.stack([label for _, label in samples]))

    folder, names, _ = pictures
    source = {"imglist": [[8.0, 16.0, names[0]]], "path_root": str(folder)}
    loader = vision.ImageDataLoader(1, (3, 8, 8), batchify_fn=halves, **source, **more)
    assert [y.asnumpy().tolist() for _ in range(3) for y in loader] == [[[4, 8]]] * 3


def test_an_estimator_trains_on_a_loader_of_images(pictures):
    folder, names, _ = pictures
    source = {"imglist": [[float(i % 2), name] for i, name in enumerate(names)], "path_root": str(folder)}
    loader = vision.ImageDataLoader(4, (3, 20, 20), rand_crop=True, rand_mirror=True, shuffle=True, **source)
    net = nn.Dense(2)
    net.initialize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    learner = estimator.Estimator(net, mx.gluon.loss.SoftmaxCrossEntropyLoss(), trainer=trainer)
    learner.logger.handlers.clear()
    learner.fit(loader, epochs=2)
    assert 0 < learner.train_metrics[1].get()[1] < 10


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"rand_crop": True},
        {"rand_crop": True, "rand_resize": True, "inter_method": 10},
        {"resize": 70, "rand_mirror": True},
        {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "hue": 0.1, "pca_noise": 0.1},
        {"rand_gray": 1.0, "dtype": "float16"},
        {"mean": (0.5,), "std": (0.5, 0.25, 0.5)},
    ],
)
@pytest.mark.parametrize("shape", [(40, 60, 3), (20, 15, 3)])
def test_image_augmentation(given, shape):
    image = mx.nd.array(np.random.RandomState(0).randint(0, 255, shape), dtype="uint8")
    augment = vision.create_image_augment((3, 24, 32), **given)
    found = pickle.loads(pickle.dumps(augment))(image)
    assert (
        found.shape == (3, 24, 32)
        and found.dtype == np.dtype(given.get("dtype", "float32"))
        and np.isfinite(found.asnumpy()).all()
    )
    if "rand_gray" in given:
        channels = found.asnumpy()
        assert (channels[0] == channels[1]).all() and (channels[1] == channels[2]).all() and channels.std() > 0
    if not given:
        assert found.asnumpy().min() >= 0 and 0.9 < found.asnumpy().max() <= 1


@pytest.mark.parametrize("source", ["rec", "lst", "list"])
@pytest.mark.parametrize("workers", [0, 2])
def test_boxes_in_batches(pictures, source, workers):
    labels = pictures[2]
    loader = vision.ImageBboxDataLoader(4, (3, 24, 30), num_workers=workers, **sources(pictures)[source])
    batches = list(loader)
    assert [x.shape for x, _ in batches] == [(4, 3, 24, 30), (3, 3, 24, 30)]
    assert [y.shape for _, y in batches] == [(4, 3, 5), (3, 3, 5)]
    found = np.concatenate([y.asnumpy() for _, y in batches])
    for boxes, label in zip(found, labels):
        rows = np.reshape(label[2:], (-1, 5))
        np.testing.assert_allclose(boxes[: len(rows)], rows[:, [1, 2, 3, 4, 0]] * [30, 24, 30, 24, 1], rtol=1e-5)
        assert (boxes[len(rows) :] == -1).all()
    raw = vision.ImageBboxDataLoader(
        1,
        (3, 24, 30),
        aug_list=[bbox.ImageBboxCrop((0, 0, 60, 48), True)],
        coord_normalized=False,
        **sources(pictures)[source],
    )
    image, boxes = next(iter(raw))
    assert image.shape == (1, 48, 60, 3) and boxes.asnumpy().tolist() == [[[0.25, 0.5, 0.75, 1, 0]]]


def test_box_augmentation(pictures):
    random.seed(0)
    mx.random.seed(0)
    loader = vision.ImageBboxDataLoader(
        7,
        (3, 30, 32),
        str(pictures[0] / "d.rec"),
        rand_crop=0.7,
        rand_pad=0.7,
        rand_mirror=True,
        rand_gray=0.2,
        mean=True,
        std=True,
        brightness=0.1,
        pca_noise=0.1,
        hue=0.1,
        inter_method=10,
    )
    for _ in range(10):
        ((images, boxes),) = loader
        found = boxes.asnumpy()
        real = found[found[:, :, 4] >= 0]
        assert images.shape == (7, 3, 30, 32) and len(real) >= 7
        assert (real[:, :2] >= 0).all() and (real[:, 0] < real[:, 2]).all() and (real[:, 1] < real[:, 3]).all()
        assert real[:, 2].max() <= 32.001 and real[:, 3].max() <= 30.001


BOXES = np.array([[10, 5, 30, 20, 1], [40, 30, 59, 39, 2]], "float32")


def marked():
    """An image whose pixels say where they are."""
    y, x = np.mgrid[0:40, 0:60]
    return mx.nd.array(np.stack([y, x, y + x], -1), dtype="uint8")


def test_boxes_move_with_their_pixels():
    image, boxes = marked(), mx.nd.array(BOXES)
    flipped, moved = bbox.ImageBboxRandomFlipLeftRight(1)(image, boxes)
    assert moved.asnumpy().tolist() == [[30, 5, 50, 20, 1], [1, 30, 20, 39, 2]]
    assert (flipped.asnumpy() == image.asnumpy()[:, ::-1]).all() and (boxes.asnumpy() == BOXES).all()
    assert bbox.ImageBboxRandomFlipLeftRight(0)(image, boxes)[1] is boxes
    cut, moved = bbox.ImageBboxCrop((8, 4, 20, 36))(image, boxes)
    assert (cut.asnumpy() == image.asnumpy()[4:, 8:28]).all() and moved.asnumpy().tolist() == [[2, 1, 20, 16, 1]]
    assert bbox.ImageBboxCrop((8, 4, 53, 36))(image, boxes)[0].shape == (40, 60, 3)
    sized, moved = bbox.ImageBboxResize(120, 20, 0)(image, boxes)
    assert sized.shape == (20, 120, 3) and moved.asnumpy()[0].tolist() == [20, 2.5, 60, 10, 1]
    for keep in (True, False):
        larger, moved = bbox.ImageBboxRandomExpand(1, 3, (1, 2, 3), keep)(image, boxes)
        left, top = (moved.asnumpy() - BOXES)[0, :2].astype(int)
        assert (
            larger.asnumpy()[top : top + 40, left : left + 60] == image.asnumpy()
        ).all() and larger.dtype == np.uint8
        assert (moved.asnumpy() - BOXES == [left, top, left, top, 0]).all()
        rest = larger.asnumpy().astype(int).sum((0, 1)) - image.asnumpy().astype(int).sum((0, 1))
        assert (rest == (larger.shape[0] * larger.shape[1] - 2400) * np.array([1, 2, 3])).all()


def test_windows_keep_their_promise():
    random.seed(1)
    crop = bbox.ImageBboxRandomCropWithConstraints(1, constraints=[(0.1, None)])
    shapes = set()
    for _ in range(50):
        cut, boxes = crop(marked(), mx.nd.array(BOXES[:1]))
        pixels, (box,) = cut.asnumpy(), boxes.asnumpy()
        left, top = pixels[0, 0, 1], pixels[0, 0, 0]
        shapes.add(cut.shape)
        assert (pixels == marked().asnumpy()[top : top + cut.shape[0], left : left + cut.shape[1]]).all() and box[
            4
        ] == 1
        window = np.array([[left, top, left + cut.shape[1], top + cut.shape[0]]])
        assert cut.shape == (40, 60, 3) or utils.bbox_iou(BOXES[:1], window)[0, 0] >= 0.1
        np.testing.assert_array_equal(
            box[:4] + [left, top, left, top],
            np.clip(BOXES[0, :4], np.tile(window[0, :2], 2), np.tile(window[0, 2:], 2)),
        )
    assert len(shapes) > 10
    boxes, window = utils.bbox_random_crop_with_constraints(np.zeros((0, 4)), (50, 40))
    assert boxes.shape == (0, 4) and window[2] <= 50
    assert utils.bbox_random_crop_with_constraints(BOXES, (60, 40), min_scale=1)[1] == (0, 0, 60, 40)


def test_functions_of_boxes():
    assert utils.bbox_crop(BOXES).tolist() == BOXES.tolist()
    assert utils.bbox_crop(BOXES, (None, 30, 0, None)).tolist() == [[40, 0, 59, 9, 2]]
    assert utils.bbox_flip(BOXES, (60, 40), flip_y=True)[0].tolist() == [10, 20, 30, 35, 1]
    assert utils.bbox_translate(BOXES.astype(int), -1.5, 2)[0].tolist() == [8, 7, 28, 22, 1]
    assert utils.bbox_iou(BOXES, BOXES).tolist() == [[1, 0], [0, 1]]
    assert utils.bbox_iou(np.zeros((1, 4)), np.zeros((1, 4))).tolist() == [[0]]
    assert utils.bbox_iou(np.array([[0, 0, 1, 1]]), np.array([[0, 0, 1, 3]]), 1).tolist() == [[0.5]]
    some = np.random.RandomState(0).randint(0, 30, (20, 4)).astype("float64")
    some[:, 2:] += some[:, :2]
    window = np.array([[5, 6, 25, 21]])
    np.testing.assert_allclose(list(utils._overlaps(some.tolist(), (5, 6, 20, 15))), utils.bbox_iou(some, window)[:, 0])
    many = np.array([[1, 2, 10, 6], [0, 0, 0, 0]])
    assert utils.bbox_xyxy_to_xywh(many).tolist() == [[1, 2, 10, 5], [0, 0, 1, 1]]
    assert utils.bbox_xywh_to_xyxy(utils.bbox_xyxy_to_xywh(many)).tolist() == many.tolist()
    assert utils.bbox_clip_xyxy(many, 5, 5).tolist() == [[1, 2, 4, 4], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: utils.bbox_crop(BOXES, (1, 2)), ValueError, r"\(left, top, width, height\), got \(1, 2\)"),
        (
            lambda: utils.bbox_flip(BOXES[0], (1, 2)),
            AssertionError,
            r"boxes must be an array \(N, 4 or more\), got one of shape \(5,\)",
        ),
        (lambda: utils.bbox_flip(BOXES, (1, 2, 3)), ValueError, "size must be"),
        (lambda: utils.bbox_iou(BOXES, BOXES[:, :3]), IndexError, "bbox_iou: boxes"),
        (lambda: utils.bbox_clip_xyxy((1, 2), 3, 4), IndexError, "a box has 4 numbers"),
        (lambda: utils.bbox_xywh_to_xyxy("abcd"), TypeError, "got str"),
        (lambda: bbox.ImageBboxCrop((0, 0, 0, 4)), AssertionError, "crop must be"),
        (
            lambda: bbox.ImageBboxResize(3, 3)(mx.nd.ones((3, 3)), mx.nd.array(BOXES)),
            NotImplementedError,
            r"got an array of shape \(3, 3\)",
        ),
        (
            lambda: bbox.ImageBboxRandomExpand(1, 2, (1, 2))(marked(), mx.nd.array(BOXES)),
            ValueError,
            "fill has 2 numbers, the image 3",
        ),
        (lambda: BboxLabelTransform()(marked(), [2, 5, 1]), RuntimeError, "a label of 3 numbers that begins with"),
        (lambda: vision.create_image_augment((1, 2, 3)), ValueError, "data_shape must be"),
        (
            lambda: vision.create_image_augment((3, 4, 4), rand_resize=True),
            AssertionError,
            "rand_resize needs rand_crop",
        ),
        (
            lambda: vision.create_bbox_augment((3, 4, 4), mean=1.5),
            AssertionError,
            "mean must be True or 1 or 3 numbers, got 1.5",
        ),
        (lambda: vision.ImageDataLoader(2, (3, 4, 4)), AssertionError, "ImageDataLoader: images come from"),
        (lambda: vision.ImageDataLoader(2, (3, 4, 4), imglist=[[1.0]]), ValueError, "entry 1 of imglist"),
        (
            lambda: vision.ImageDataLoader(2, (3, 4, 4), imglist=[[1.0, "a"]], aug_list=[print]),
            ValueError,
            "aug_list must be a Block",
        ),
        (
            lambda: vision.ImageBboxDataLoader(2, (3, 4, 4), imglist=[[1.0, "a"]], dtype="bool"),
            AssertionError,
            "dtype, of labels, .* 'bool'",
        ),
        (
            lambda: next(iter(vision.ImageDataLoader(1, (3, 4, 4), imglist=[[1.0, "no.jpg"]]))),
            FileNotFoundError,
            "no.jpg",
        ),
        (lambda: vision.ImageDataLoader(1, (3, 4, 4), path_imgrec="no.rec"), FileNotFoundError, "no"),
    ],
)
def test_bad_images_and_boxes(call, kind, words):
    with pytest.raises(kind, match=words) as told:
        call()
    assert isinstance(told.value, MXNetError)
