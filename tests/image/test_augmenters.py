"""Functions and augmenters of images: what golden files do not show."""

import json
import random
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.gluon.data.vision import transforms as vision_transforms
from mxcore.image.det_augmenters import areas
from mxcore.image.functions import interpolation

from ..golden.image_cases import IMAGES


@pytest.fixture
def picture():
    return mx.image.imread(IMAGES / "0.png")


def test_own_augmenters(picture):
    class Cut(mx.image.Augmenter):
        def __init__(self, much, by):
            super().__init__(much=much, by=by)

        def __call__(self, src):
            return src[:10]

    one = Cut(mx.nd.array([1, 2]), np.float32(3))
    assert json.loads(one.dumps()) == ["cut", {"much": [1.0, 2.0], "by": 3.0}]
    assert mx.image.SequentialAug([one, mx.image.CastAug()])(picture).shape == (10, 60, 3)
    for base, args in ((mx.image.Augmenter, (picture,)), (mx.image.DetAugmenter, (picture, None))):
        with pytest.raises(NotImplementedError, match="must define __call__"):
            base()(*args)


def test_sizes_that_are_kept_are_not_copied_twice(picture):
    assert mx.image.fixed_crop(picture, 0, 0, 60, 40, (60, 40)).shape == (40, 60, 3)
    out = mx.image.center_crop(picture, (20, 10))[0]
    before = picture.asnumpy()
    out = mx.image.CastAug()(out)
    out *= 0
    np.testing.assert_array_equal(picture.asnumpy(), before)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda x: mx.image.resize_short(x, 10, 11), ValueError, "interp must be 0 to 4, 9 or 10, got 11"),
        (
            lambda x: mx.image.resize_short(x[0], 10),
            ValueError,
            r"resize_short: src must be an image \(height, width, "
            r"channels\), got \(60, 3\)",
        ),
        (lambda x: mx.image.center_crop(3, (1, 1)), ValueError, "center_crop: src must be an image .*got int"),
        (lambda x: mx.image.random_size_crop(x, (20, 10), 0.3, (1, 2), are=1), TypeError, "'are', did you mean 'area'"),
        (lambda x: mx.image.RandomSizedCropAug((20, 10), 0.3, (1, 2), foo=1), TypeError, "foo"),
        (lambda x: mx.image.imdecode("abc"), ValueError, "imdecode: buf must be the bytes of an image file .*got str"),
        (lambda x: mx.image.imdecode(b"abc"), MXNetError, "3 bytes.*no image that OpenCV can decode"),
        (lambda x: mx.image.imread("/no/such.png"), FileNotFoundError, "such.png"),
        (lambda x: mx.image.imread(IMAGES / "0.png", colour=1), TypeError, "colour"),
        (lambda x: mx.image.imrotate(x, 3), TypeError, "float32"),
        (lambda x: mx.image.imrotate(x.astype("float32")[0], 3), ValueError, r"\(60, 3\)"),
        (lambda x: mx.image.imrotate(x.astype("float32"), 3, True, True), ValueError, "exclude one another"),
        (
            lambda x: mx.image.imrotate(x.astype("float32"), mx.nd.array([3])),
            TypeError,
            "one image is turned by one number",
        ),
        (
            lambda x: mx.image.imrotate(x.astype("float32").expand_dims(0), [3, 4]),
            ValueError,
            r"1 images need as many angles, got \(2,\)",
        ),
        (lambda x: mx.image.random_rotate(x.astype("float32"), 3), TypeError, "angle_limits"),
        (lambda x: mx.image.CreateAugmenter((3, 2, 2), rand_resize=True), ValueError, "rand_crop=True"),
        (lambda x: mx.image.CreateAugmenter((3, 2, 2), mean=3), TypeError, "mean must be True or an array"),
        (
            lambda x: mx.image.CreateDetAugmenter((3, 2, 2), std=np.ones(2)),
            TypeError,
            r"std must be True or an array of "
            r"1 or 3 numbers, got \(2,\)",
        ),
        (lambda x: mx.image.DetBorrowAug(3), TypeError, "an Augmenter is needed, got int"),
        (lambda x: mx.image.DetRandomSelectAug([mx.image.CastAug()]), ValueError, "DetAugmenters, got CastAug"),
        (lambda x: mx.image.DetRandomPadAug(pad_val="a"), TypeError, "pad_val"),
        (
            lambda x: mx.image.CreateMultiRandCropAugmenter([0.1, 0.5], area_range=[(0.1, 1)] * 3),
            ValueError,
            "2 values where another argument has 3",
        ),
        (
            lambda x: mx.image.fixed_crop(x, 60, 4, 10, 20),
            ValueError,
            r"fixed_crop: nothing of the image, 60 x 40, lies "
            r"in the window from 60, 4 of 10 x 20",
        ),
        (lambda x: mx.image.fixed_crop(x, 3, 4, 0, 20, (5, 5)), ValueError, r"from 3, 4 of 0 x 20"),
    ],
)
def test_what_does_not_fit_is_refused(picture, call, kind, text):
    with pytest.raises(kind, match=text):
        call(picture)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mx.image.random_size_crop(x, (20, 10), 0.3, (1, 2), are=1),
        lambda x: mx.image.RandomSizedCropAug((20, 10), 0.3, (1, 2), foo=1),
        lambda x: mx.image.CreateAugmenter((3, 2, 2), rand_resize=True),
        lambda x: mx.image.CreateAugmenter((3, 2, 2), mean=3),
        lambda x: mx.image.DetRandomPadAug(pad_val="a"),
        lambda x: mx.image.CreateMultiRandCropAugmenter([0.1, 0.5], area_range=[(0.1, 1)] * 3),
        lambda x: mx.image.ImageIter(1, (3, 2, 2), imglist=[[1.0, "0.png"]], path_root=str(IMAGES), dtype="float16"),
        lambda x: mx.image.ImageIter(
            1, (3, 2, 2), imglist=[[1.0, "0.png"]], path_root=str(IMAGES), part_index=2, num_parts=2
        ),
        lambda x: mx.image.ImageDetIter(
            1, (3, 2, 2), imglist=[[[2.0, 5, 0, 0, 0, 1, 1], "0.png"]], path_root=str(IMAGES)
        ).sync_label_shape(3),
    ],
)
def test_where_mxnet_asserts_programs_may_catch_it(picture, call):
    with pytest.raises(AssertionError):
        call(picture)


@pytest.mark.parametrize(
    "kind, kwargs",
    [
        (mx.image.DetRandomCropAug, {"area_range": (2, 1)}),
        (mx.image.DetRandomCropAug, {"area_range": (-1, 0)}),
        (mx.image.DetRandomCropAug, {"aspect_ratio_range": (2, 1)}),
        (mx.image.DetRandomCropAug, {"aspect_ratio_range": (0, 1)}),
        (mx.image.DetRandomPadAug, {"area_range": 0.5}),
        (mx.image.DetRandomPadAug, {"area_range": (3, 2)}),
    ],
)
def test_ranges_without_sense_switch_an_augmenter_off(picture, kind, kwargs):
    with pytest.warns(UserWarning, match="does nothing"):
        off = kind(**kwargs)
    label = np.array([[0, 0.1, 0.2, 0.5, 0.6]])
    out, rows = off(picture, label)
    assert not off.enabled and out is picture and rows is label


def test_the_old_name_of_area(picture):
    random.seed(3)
    with pytest.warns(DeprecationWarning, match="min_area"):
        out, place = mx.image.random_size_crop(picture, (5, 4), None, (1, 1), min_area=0.3)
    assert out.shape == (4, 5, 3) and place[2] == place[3] >= 26


def test_windows_hold_what_they_promise(picture):
    label = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.3, 0.3, 0.9, 0.95]], "float32")
    cut = mx.image.DetRandomCropAug(0.3, (0.5, 2), (0.1, 0.9), 0.4)
    changed = 0
    for _ in range(200):
        out, rows = cut(picture, label)
        assert (
            1 <= len(rows) <= 2
            and (rows[:, 1:] >= 0).all()
            and (rows[:, 1:] <= 1).all()
            and (rows[:, 3:] > rows[:, 1:3]).all()
        )
        changed += out.shape != picture.shape
        height, width = out.shape[:2]
        assert out.shape == picture.shape or 0.1 * 2400 <= height * width <= 0.9 * 2400
    assert changed > 100
    assert mx.image.DetRandomCropAug(1.0)(picture, label)[0] is picture  # no window holds more than all


@pytest.mark.parametrize(
    "sizes, method", [((), 2), ((4, 4, 8, 8), 2), ((8, 8, 4, 4), 3), ((8, 4, 4, 8), 1), ((4, 4, 4, 4), 1)]
)
def test_methods_that_other_libraries_ask_for(sizes, method):  # GluonCV
    assert interpolation(9, sizes) == method and interpolation(4, sizes) == 4


def test_boxes_without_end_have_no_area_and_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = areas(np.array([[0, 0, np.inf, 0], [0, 0, 3e38, 3e38], [0, 0, 2, 3], [1, 1, 0, 2]], np.float32))
    assert not found[0] > 0 and found[2:].tolist() == [6, 0]


def test_images_without_pixels_and_impossible_windows_say_so():
    empty, some = mx.nd.empty((0, 4, 3)), mx.nd.zeros((8, 8, 3))
    assert mx.image.ContrastJitterAug(0.5)(empty).shape == (0, 4, 3)
    for call, word in (
        (lambda: mx.image.resize_short(empty, 4), "resize_short: src has no pixels"),
        (lambda: mx.image.random_size_crop(some, (4, 4), 0.5, (0, 0)), r"ratio \(0, 0\) above 0"),
        (lambda: mx.image.random_size_crop(some, (4, 4), (-1, 1), (1, 1)), r"area \(-1, 1\) must be 0 or more"),
        (lambda: mx.image.imread("/dev/zero"), "/dev/zero cannot be read whole"),
        (lambda: mx.recordio.pack_img(mx.recordio.IRHeader(0, 0, 0, 0), some.asnumpy(), img_fmt=None), "ending like"),
        (lambda: mx.recordio.pack_img(mx.recordio.IRHeader(0, 0, 0, 0), some.asnumpy(), quality="x"), "whole number"),
    ):
        with pytest.raises(mx.MXNetError, match=word):
            call()


@pytest.mark.parametrize("value", ["x", None, (1, 2), float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize(
    "make, name",
    [
        (mx.image.BrightnessJitterAug, "BrightnessJitterAug: brightness"),
        (mx.image.ContrastJitterAug, "ContrastJitterAug: contrast"),
        (mx.image.SaturationJitterAug, "SaturationJitterAug: saturation"),
        (mx.image.HueJitterAug, "HueJitterAug: hue"),
        (lambda v: mx.image.ColorJitterAug(0, v, 0), "ColorJitterAug: contrast"),
        (lambda v: mx.image.LightingAug(v, np.ones(3), np.ones((3, 3))), "LightingAug: alphastd"),
        (mx.image.RandomGrayAug, "RandomGrayAug: p"),
        (mx.image.HorizontalFlipAug, "HorizontalFlipAug: p"),
        (mx.image.DetHorizontalFlipAug, "DetHorizontalFlipAug: p"),
        (lambda v: mx.image.DetRandomSelectAug([], v), "DetRandomSelectAug: skip_prob"),
        (lambda v: mx.image.CreateAugmenter((3, 4, 4), hue=v), "CreateAugmenter: hue"),
        (lambda v: mx.image.CreateDetAugmenter((3, 4, 4), pca_noise=v), "CreateDetAugmenter: pca_noise"),
        (mx.gluon.data.vision.transforms.RandomBrightness, "RandomBrightness: the amount"),
        (lambda v: mx.gluon.data.vision.transforms.RandomColorJitter(hue=v), "RandomColorJitter: an amount"),
        (mx.gluon.data.vision.transforms.RandomLighting, "RandomLighting: alpha"),
        (lambda v: mx.gluon.data.vision.transforms.RandomRotation((0, v)), "RandomRotation: an angle"),
    ],
)
def test_chances_and_amounts_are_numbers(make, name, value):
    with pytest.raises(MXNetError, match=f"^{name} must be a finite number, got"):
        make(value)


def test_angles_are_two():
    with pytest.raises(TypeError, match="angle_limits must be .least, largest., got 2"):
        mx.gluon.data.vision.transforms.RandomRotation(2)


@pytest.mark.parametrize("shape", [(1, 1, 3), (30, 1, 3), (1, 30, 3)])
@pytest.mark.parametrize(
    "crop",
    [
        mx.image.random_crop,
        mx.image.center_crop,
        lambda x, size: mx.image.random_size_crop(x, size, (0, 0.02), (1, 1)),
        lambda x, size: (vision_transforms.CenterCrop(size)(x), None),
        lambda x, size: (vision_transforms.RandomResizedCrop(size, (1, 1), (1, 1))(x), None),
    ],
)
def test_crops_of_pictures_one_place_wide(crop, shape):
    found, _ = crop(mx.nd.full(shape, 7, dtype="uint8"), (10, 8))
    assert found.shape == (8, 10, 3) and (found.asnumpy() == 7).all()
