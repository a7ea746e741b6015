"""Augmentation against MXNet 1.9.1's results, and the random ones by their properties."""

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mxcore.base import MXNetError
from mxcore_io_rec import image_iter
from mxcore_io_rec.augment import Augmenter, interpolation, resize_short, shift_hls
from mxcore_io_rec.det_augment import DetAugmenter, Objects
from mxcore_io_rec.det_iter import ImageDetRecordIter
from mxcore_io_rec.normalize import Normalizer
from mxcore_io_rec.params import AUGMENT as AUGMENT_PARAMETERS
from mxcore_io_rec.params import DET_AUGMENT, NORMALIZE, parse
from mxcore_io_rec.recordio import MXIndexedRecordIO, MXRecordIO, unpack_img

from .cases import AUGMENT, DETECTION

GOLDEN = Path(__file__).parent / "golden"

# OpenCV's newer affine and cubic interpolations round differently: largest and mean difference, of 255.
TOLERANCE = dict.fromkeys(("rotate", "aspect"), (9, 0.2)) | dict.fromkeys(
    ("shrink 2", "enlarge 2", "enlarge 9"), (1, 0.1)
)


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "augment.npz") as arrays:
        return dict(arrays)


@pytest.fixture
def one(tmp_path):
    """Makes a file of one of the golden images."""
    images = MXIndexedRecordIO(GOLDEN / "images.idx", GOLDEN / "images.rec", "r")

    def make(i):
        with MXRecordIO(tmp_path / "one.rec", "w") as record:
            record.write(images.read_idx(i))
        return str(tmp_path / "one.rec")

    return make


@pytest.fixture(scope="module")
def picture():
    return unpack_img(MXRecordIO(GOLDEN / "images.rec", "r").read())[1]


@pytest.mark.parametrize("name", AUGMENT)
def test_as_mxnet_does(name, golden, one):
    case = AUGMENT[name]
    it = getattr(image_iter, case["iter"])(path_imgrec=one(case["record"]), batch_size=1, **case["parameters"])
    (images,), _, _, _ = it.next_arrays()
    it.close()
    assert images[0].dtype == golden[name].dtype and images[0].shape == golden[name].shape
    difference = np.abs(images[0].astype(float) - golden[name])
    most, mean = TOLERANCE.get(name, (1e-5, 1e-6))
    assert difference.max() <= most and difference.mean() <= mean


@pytest.mark.parametrize("name", DETECTION)
def test_objects_as_mxnet_does(name):
    it = ImageDetRecordIter(path_imgrec=str(GOLDEN / "objects.rec"), batch_size=2, **DETECTION[name])
    (images,), (labels,), pad, index = it.next_arrays()
    it.close()
    assert pad == 0 and index.tolist() == [0, 1]
    with np.load(GOLDEN / "objects.npz") as golden:
        np.testing.assert_allclose(images, golden[f"{name}.data"], atol=1e-5)
        np.testing.assert_allclose(labels, golden[f"{name}.label"], atol=1e-6)


# -- chance ------------------------------------------------------------------------------------------


def augmenter(shape=(3, 16, 20), **parameters):
    p = parse("test", [AUGMENT_PARAMETERS], parameters)
    p.data_shape = shape
    return Augmenter(p)


def many(change, image, count=200):
    return [change(image, random.Random(i)) for i in range(count)]


def test_random_crops_are_parts_from_everywhere(picture):
    rows = np.arange(24 * 36, dtype=np.uint8).reshape(24, 36)  # every corner tells its place modulo 256
    corners = {int(c[0, 0]) for c in many(augmenter((1, 22, 34), rand_crop=True), rows)}
    assert corners == {int(rows[y, x]) for y in range(3) for x in range(3)}


@pytest.mark.parametrize(
    "parameters, low, high",
    [({"brightness": 0.3}, 0.7, 1.3), ({"contrast": 0.5}, 0.5, 1.5), ({"saturation": 0.5}, 0.5, 1.5)],
)
def test_colour_changes_within_bounds(parameters, low, high):
    image = np.random.RandomState(0).randint(100, 150, (16, 20, 3), dtype=np.uint8)
    grey = image @ [0.114, 0.587, 0.299]

    def spread(i):  # what the change multiplies
        i = i.astype(float)
        if "brightness" in parameters:
            return i.mean()
        return i.std() if "contrast" in parameters else (i - (i @ [0.114, 0.587, 0.299])[..., None]).std()

    factors = [spread(i) / spread(image) for i in many(augmenter(**parameters), image)]
    assert low - 0.02 <= min(factors) < low + 0.05 and high - 0.05 < max(factors) <= high + 0.02
    if "saturation" in parameters:  # grey values stay
        changed = augmenter(**parameters)(image, random.Random(1))
        assert np.abs(changed @ [0.114, 0.587, 0.299] - grey).max() < 1


def test_colour_changes_of_grey_and_alpha():
    image = np.random.RandomState(0).randint(100, 150, (16, 20, 4), dtype=np.uint8)
    parameters = {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "random_h": 5}
    for i in range(20):
        changed = augmenter((4, 16, 20), **parameters)(image, random.Random(i))
        assert (changed[..., 3] == image[..., 3]).all() and (changed[..., :3] != image[..., :3]).any()
        grey = augmenter((1, 16, 20), **parameters)(image[..., 0], random.Random(i)).astype(float)
        slope, offset = np.polyfit(image[..., 0].ravel(), grey.ravel(), 1)
        assert 0.7 * 0.7 < slope < 1.3 * 1.3 and np.abs(slope * image[..., 0] + offset - grey).max() < 1


def test_pca_noise_shifts_each_image_as_a_whole(picture):
    changed = many(augmenter((3, 24, 36), pca_noise=0.05), picture)
    shifts = np.array([(c.astype(float) - picture).mean((0, 1)) for c in changed])
    assert all(np.ptp(c.astype(int) - picture, axis=(0, 1)).max() <= 1 for c in changed[:20])
    first = np.linalg.svd(shifts - shifts.mean(0))[2][0]  # along the grey axis, more or less
    assert np.abs(first).min() > 0.5 and 1.4 < shifts.std() < 1.8


def test_rotation_shear_scale_keep_the_centre():
    image = np.zeros((41, 41), np.uint8)
    image[18:23, 18:23] = 255
    for p in ({"max_rotate_angle": 45}, {"max_shear_ratio": 0.3}, {"max_random_scale": 1.5, "min_random_scale": 0.8}):
        for changed in many(augmenter((1, 31, 31), fill_value=0, **p), image, 20):
            y, x = np.nonzero(changed > 127)
            assert abs(y.mean() - 15) < 1.2 and abs(x.mean() - 15) < 1.2


def test_random_resized_crops_have_area_and_aspect():
    y, x = np.mgrid[:100, :100]
    image = np.stack([x, y, np.zeros_like(x)], -1).astype(np.uint8)
    areas = {"min_random_area": 0.3, "max_random_area": 0.5}
    change = augmenter((3, 50, 50), random_resized_crop=True, max_aspect_ratio=0.5, **areas)
    shapes = []
    for c in many(change, image):
        across, down = (float(c[..., k].max()) - float(c[..., k].min()) + 1 for k in (0, 1))
        shapes.append((across * down / 1e4, across / down))
    areas, aspects = np.array(shapes).T
    assert 0.27 < areas.min() < 0.35 and 0.45 < areas.max() < 0.53
    assert aspects.min() < 0.75 and aspects.max() > 1.35


def test_mirroring_is_a_fair_coin(picture):
    p = parse("test", [NORMALIZE], {"rand_mirror": True})
    p.data_shape = (3, 24, 36)
    normalize, out = Normalizer(p, "uint8"), np.empty((3, 24, 36), np.uint8)
    flipped = 0
    for i in range(400):
        normalize(picture, random.Random(i), out)
        flipped += (out == picture.transpose(2, 0, 1)[::-1, :, ::-1]).all()
    assert 150 < flipped < 250


def test_random_contrast_and_illumination(picture):
    parameters = {"max_random_contrast": 0.4, "max_random_illumination": 30, "mean_r": 10, "mean_g": 10, "mean_b": 10}
    p = parse("test", [NORMALIZE], {**parameters, "scale": 0.5})
    p.data_shape = (3, 24, 36)
    normalize, out = Normalizer(p, "float32"), np.empty((3, 24, 36), np.float32)
    plain = picture.transpose(2, 0, 1)[::-1].astype(float) - 10
    lines = []
    for i in range(200):
        normalize(picture, random.Random(i), out)
        lines.append(np.polyfit(plain.ravel(), out.ravel(), 1))
    slope, offset = np.array(lines).T
    assert 0.3 < slope.min() < 0.32 and 0.68 < slope.max() < 0.7
    assert -15 < offset.min() < -14 and 14 < offset.max() < 15


def test_hue_stops_at_its_ends():
    red = np.array([[[10, 10, 250]]], np.uint8)
    assert (shift_hls(red, -20, 0, 0) == red).all()
    assert (shift_hls(red, 20, 0, 0) != red).any()


def test_mean_image_is_subtracted_and_mirrored_with_the_image(picture):
    mean = np.random.RandomState(0).rand(3, 24, 36).astype("float32") * 50
    plain = picture.transpose(2, 0, 1)[::-1].astype("float32")
    out = np.empty((3, 24, 36), np.float32)
    for mirror in (False, True):
        p = SimpleNamespace(data_shape=(3, 24, 36), mirror=mirror, mean_r=99, scale=0.5, std_r=2.0)
        Normalizer(p, "float32", mean)(picture, None, out)
        expected = (plain - mean) * 0.5 / np.float32([2, 1, 1]).reshape(3, 1, 1)
        np.testing.assert_allclose(out, expected[:, :, :: -1 if mirror else 1], rtol=1e-6)
    with pytest.raises(ValueError, match="mean image has shape"):
        Normalizer(SimpleNamespace(data_shape=(3, 5, 5)), "float32", mean)


@pytest.mark.parametrize(
    "parameters, word",
    [
        ({"aug_seq": "other"}, "aug_seq"),
        ({"inter_method": 7}, "inter_method"),
        ({"max_crop_size": 10}, "min_crop_size"),
        ({"max_crop_size": 10, "min_crop_size": 12}, "min_crop_size"),
        ({"max_aspect_ratio": 1.5}, "aspect"),
        ({"min_aspect_ratio": 2, "max_aspect_ratio": 1}, "aspect"),
    ],
)
def test_parameters_that_do_not_fit(parameters, word):
    with pytest.raises(ValueError, match=word) as caught:
        augmenter(**parameters)
    assert isinstance(caught.value, MXNetError)


def test_too_small_an_image_for_its_crop(picture):
    with pytest.raises(ValueError, match="24 x 36 pixels is too small for max_crop_size 30"):
        augmenter(max_crop_size=30, min_crop_size=30)(picture, random.Random(0))


def test_interpolations():
    assert [interpolation(9, None, (8, 8), new) for new in ((9, 9), (7, 7), (9, 7))] == [2, 3, 1]
    assert {interpolation(10, random.Random(i), (1, 1), (1, 1)) for i in range(99)} == {0, 1, 2, 3, 4}
    assert resize_short(np.zeros((30, 20, 3), np.uint8), 10).shape == (15, 10, 3)
    assert resize_short(np.zeros((1000, 1), np.uint8), 2).shape == (2000, 2)


# -- objects -----------------------------------------------------------------------------------------


def detection(**parameters):
    p = parse("test", [DET_AUGMENT], parameters)
    p.data_shape = (3, 40, 40)
    return DetAugmenter(p)


def scene():
    """An image whose red square is its one object."""
    image = np.zeros((60, 90, 3), np.uint8)
    image[20:40, 30:60] = 255
    return image, Objects(np.array([3, 5, 42, 7, 30 / 90, 20 / 60, 60 / 90, 40 / 60]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"rand_mirror_prob": 1},
        {"rand_pad_prob": 1, "max_pad_scale": 3, "fill_value": 0},
        {"rand_crop_prob": 1, "min_crop_scales": 0.5, "max_crop_scales": 0.9},
        {"rand_crop_prob": 1, "min_crop_scales": 0.4, "min_crop_aspect_ratios": 0.5, "max_crop_aspect_ratios": 2},
        {"rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2, "rand_crop_prob": 0.5, "fill_value": 0},
    ],
)
def test_boxes_stay_on_their_objects(parameters):
    change, moved = detection(**parameters), 0
    for i in range(60):
        image, objects = scene()
        changed = change(image, objects, random.Random(i))
        assert changed.shape == (40, 40, 3)
        assert objects.head.tolist() == [3, 5, 42] and objects.rows[0, 0] == 7
        y, x = np.nonzero(changed[..., 0] > 127)
        found = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1]) / 40
        assert np.abs(found - objects.boxes[0]).max() < 0.045
        moved += np.abs(objects.boxes - scene()[1].boxes).max() > 0.01
    assert moved > 20 or parameters == {"rand_mirror_prob": 1}  # where the object is in the middle


def test_colour_changes_leave_boxes_alone():
    p = {"random_hue_prob": 1, "max_random_hue": 20, "random_saturation_prob": 1, "max_random_saturation": 50}
    p |= {"random_illumination_prob": 1, "max_random_illumination": 50, "random_contrast_prob": 1}
    image = np.random.RandomState(0).randint(50, 200, (40, 40, 3), dtype=np.uint8)
    means = []
    for i in range(30):
        objects = scene()[1]
        changed = detection(**p, max_random_contrast=0.3)(image, objects, random.Random(i))
        means.append(changed.mean())
        assert (changed != image).any() and (objects.rows == scene()[1].rows).all()
    assert np.std(means) > 10


def test_several_samplers_and_the_other_way_to_keep_objects():
    change = detection(
        rand_crop_prob=1,
        num_crop_sampler=3,
        min_crop_scales=(0.3, 0.5, 0.7),
        max_crop_scales=(0.4, 0.6, 0.8),
        crop_emit_mode="overlap",
        emit_overlap_thresh=0.2,
    )
    sizes = []
    for i in range(60):
        image, objects = scene()
        change(image, objects, random.Random(i))
        left, top, right, bottom = objects.boxes[0]
        sizes.append((right - left) * (bottom - top))
    assert len(objects.rows) == 1 and np.ptp(sizes) > 0.2


def test_crops_keep_the_overlap_that_is_asked_for():
    change = detection(
        rand_crop_prob=1, min_crop_scales=0.3, max_crop_scales=0.9, min_crop_object_coverages=0.9, max_crop_trials=200
    )
    for i in range(50):
        image, objects = scene()
        change(image, objects, random.Random(i))
        assert len(objects.rows) == 1


def test_a_crop_loses_objects_and_never_all():
    lost = 0
    change = detection(rand_crop_prob=1, min_crop_scales=0.3, max_crop_scales=0.5)
    for i in range(80):
        image = np.zeros((60, 90, 3), np.uint8)
        objects = Objects(np.array([2, 5, 0, 0.05, 0.05, 0.2, 0.2, 1, 0.8, 0.8, 0.95, 0.95]))
        change(image, objects, random.Random(i))
        assert len(objects.rows) in (1, 2) and objects.boxes.min() >= 0 and objects.boxes.max() <= 1
        lost += len(objects.rows) == 1
    assert lost > 10
    only = detection(rand_crop_prob=1, max_crop_scales=0.5, crop_emit_mode="overlap", emit_overlap_thresh=0.99)
    image, objects = scene()
    only(image, objects, random.Random(0))
    assert len(objects.rows) == 1


@pytest.mark.parametrize(
    "parameters, word",
    [
        ({"aug_seq": "aug_default"}, "aug_seq"),
        ({"max_pad_scale": 0.5}, "max_pad_scale"),
        ({"min_crop_scales": (0.1, 0.2, 0.3), "num_crop_sampler": 2}, "3 values for 2 samplers"),
        ({"min_crop_overlaps": 0.9, "max_crop_overlaps": 0.1}, "min_crop_overlaps"),
        ({"max_crop_scales": 1.5}, "scales"),
        ({"inter_method": 6}, "inter_method"),
    ],
)
def test_detection_parameters_that_do_not_fit(parameters, word):
    with pytest.raises(ValueError, match=word):
        detection(**parameters)


@pytest.mark.parametrize("label", [[1.0], [2, 5, 1], [1, 5, 1, 2, 3, 4, 5], [2, 4, 1, 2, 3, 4], [9, 5, 1], 3.0])
def test_labels_that_are_none(label):
    with pytest.raises(ValueError, match="detection label"):
        Objects(np.array(label))


def test_parameters_are_read_as_mxnet_writes_them():
    p = parse("test", [AUGMENT_PARAMETERS, NORMALIZE], {"rand_crop": "True", "scale": "0.5", "resize": "8"})
    assert (p.rand_crop, p.scale, p.resize, p.mean_r) == (True, 0.5, 8, 0.0)
    with pytest.raises(TypeError, match="test: parameter resize must be int, got .big"):
        parse("test", [AUGMENT_PARAMETERS], {"resize": "big"})
    with pytest.warns(UserWarning, match=r"'rand_croop' \(meant 'rand_crop'\?\)"):
        parse("test", [AUGMENT_PARAMETERS], {"rand_croop": True})
