"""What ``mx.image`` does with four pictures, in MXNet 1.9.1 and here; imported by the maker and by the test.

A case is a function of the module ``mx``, run after both sources of chance got a seed; it gives arrays and numbers.
"""

import json
import os
import pathlib
import random

import numpy as np

IMAGES = pathlib.Path(__file__).resolve().parent / "data" / "images"
NAMES = [f"{i}.png" for i in range(4)]
#: [A, B, more of the header, rows of class, left, top, right, bottom].
OBJECTS = [
    [4, 5, 60, 40, *(v for j in range(i % 3 + 1) for v in (j, 0.1 * j, 0.2, 0.5 + 0.1 * j, 0.7))] for i in range(4)
]
#: What resizes by cubic convolution: OpenCV's versions round differently.
LOOSE = {"resize_short", "crops", "sized", "force", "classes", "detection", "det_crop", "det_pad"}


def image(mx, i=0):
    """A picture of uint8."""
    return mx.image.imread(str(IMAGES / NAMES[i]))


def listed(labels):
    """`imglist` of the four pictures."""
    return [[label, name] for label, name in zip(labels, NAMES)]


def read(mx):
    """Colours, grey, blue first; from bytes of three kinds."""
    data = (IMAGES / NAMES[0]).read_bytes()
    given = (
        data,
        bytearray(data),
        np.frombuffer(data, np.uint8),
        mx.nd.array(np.frombuffer(data, np.uint8), dtype="uint8"),
    )
    path = os.fspath(IMAGES / NAMES[1])
    return [
        *map(mx.image.imdecode, given),
        mx.image.imdecode(data, flag=0),
        mx.image.imdecode(data, to_rgb=0),
        mx.image.imread(path),
        mx.image.imread(path, 0),
    ]


def resize(mx):
    """Methods whose pixels are the same in all versions of OpenCV."""
    return [mx.image.imresize(image(mx), 25, 30, interp=i) for i in (0, 1)]


def resize_short(mx):
    """Shorter sides, methods by size."""
    return [
        mx.image.resize_short(image(mx, i), size, interp)
        for i in (0, 1)
        for size in (10, 33, 70)
        for interp in (0, 1, 2, 3, 9)
    ]


def border(mx):
    """Margins of every kind."""
    return [
        *(mx.image.copyMakeBorder(image(mx), 1, 2, 3, 4, type=t) for t in range(5)),
        mx.image.copyMakeBorder(image(mx), 1, 0, 3, 2, values=(9, 8, 7)),
    ]


def sizes(mx):
    """Largest sizes that fit."""
    return [
        np.array(
            [
                mx.image.scale_down(a, b)
                for a in ((640, 480), (30, 20))
                for b in ((720, 120), (60, 90), (6, 9), (31, 19))
            ]
        )
    ]


def crops(mx):
    """Windows, by chance and not."""
    found = []
    for i in range(4):
        one = image(mx, i)
        found.append(mx.image.fixed_crop(one, 3, 4, 10, 20))
        found.append(mx.image.fixed_crop(one, 3, 4, 10, 20, (30, 25), 1))
        for crop in (mx.image.random_crop, mx.image.center_crop):
            for size in ((21, 10), (70, 30)):
                out, place = crop(one, size)
                found += [out, np.array(place)]
    return found


def sized(mx):
    """Windows of an area and proportions taken by chance."""
    found = []
    for i in range(8):
        out, place = mx.image.random_size_crop(
            image(mx, i % 4), (20, 10), ((0.08, 1), 0.3, (0.9, 1.5))[i % 3], (3 / 4, 4 / 3), (1, 2, 9, 10)[i % 4]
        )
        found += [out, np.array(place)]
    return found


def normalize(mx):
    """In place."""
    one = image(mx).astype("float32")
    out = mx.image.color_normalize(one, mx.nd.array([1, 2, 3]), mx.nd.array([2, 3, 4]))
    return [out, one, np.array(out is one)]


def rotate(mx):
    """One image and several, angles given and by chance, three ways to zoom."""
    one = image(mx).astype("float32").transpose((2, 0, 1)) / 255
    two = mx.nd.stack(one, one * 0.5)
    found = []
    for zoom in ({}, {"zoom_in": True}, {"zoom_out": True}):
        found += [
            mx.image.imrotate(one, 30, **zoom),
            mx.image.imrotate(two, mx.nd.array([10, 100]), **zoom),
            mx.image.imrotate(two, 77.7, **zoom),
            mx.image.random_rotate(one, (-30, 60), **zoom),
            mx.image.random_rotate(two, (-30, 60), **zoom),
        ]
    return found


def colours(mx):
    """Every augmenter of colours, three times."""
    kinds = [
        mx.image.BrightnessJitterAug(0.4),
        mx.image.ContrastJitterAug(0.4),
        mx.image.SaturationJitterAug(0.4),
        mx.image.HueJitterAug(0.4),
        mx.image.ColorJitterAug(0.3, 0.2, 0.1),
        mx.image.LightingAug(0.5, np.array([5.0, 2, 1]), np.eye(3) + 0.1),
        mx.image.RandomGrayAug(0.5),
        mx.image.HorizontalFlipAug(0.5),
        mx.image.ColorNormalizeAug(np.array([1.0, 2, 3]), None),
        mx.image.SequentialAug([mx.image.CastAug("float64"), mx.image.CastAug()]),
        mx.image.RandomOrderAug(
            [mx.image.HorizontalFlipAug(1), mx.image.CenterCropAug((20, 20)), mx.image.RandomCropAug((15, 30))]
        ),
    ]
    return [kind(image(mx, i).astype("float32")) for kind in kinds for i in range(3)]


def force(mx):
    """Sizes whatever the proportions."""
    return [mx.image.ForceResizeAug((20, 30), i)(image(mx, j)) for i in (0, 1, 2, 9) for j in (0, 1)]


def dumps(mx):
    """What augmenters say of themselves."""
    full = {
        "brightness": 0.1,
        "contrast": 0.1,
        "saturation": 0.1,
        "hue": 0.1,
        "pca_noise": 0.1,
        "rand_gray": 0.5,
        "mean": np.array([1.0, 2, 3]),
        "std": np.array([4.0, 5, 6]),
    }
    lists = [
        mx.image.CreateAugmenter((3, 20, 30), resize=40, **full),
        mx.image.CreateAugmenter((3, 20, 30), rand_crop=True, rand_mirror=True),
        mx.image.CreateAugmenter((3, 20, 30), rand_crop=True, rand_resize=True, inter_method=10),
        mx.image.CreateDetAugmenter((3, 20, 30), resize=40, rand_crop=0.5, rand_pad=0.5, rand_mirror=True, **full),
        mx.image.CreateDetAugmenter(
            (3, 20, 30), rand_crop=1, min_object_covered=[0.1, 0.5], area_range=[(0.1, 1), (0.2, 2)]
        ),
    ]
    text = json.dumps([[a.dumps() for a in one] for one in lists])
    return [np.frombuffer(text.encode(), np.uint8)]


def batches(it, epochs=2):
    """Data, labels and pads of some epochs."""
    found = []
    for _ in range(epochs):
        for batch in it:
            found += [batch.data[0], batch.label[0], np.array(batch.pad)]
        it.reset()
    return found


def classes(mx):
    """Batches with every change of colours, shuffled."""
    return batches(
        mx.image.ImageIter(
            3,
            (3, 20, 20),
            path_root=str(IMAGES),
            imglist=listed([0.0, 1.0, 2.0, 3.0]),
            shuffle=True,
            rand_crop=True,
            rand_resize=True,
            rand_mirror=True,
            brightness=0.1,
            contrast=0.1,
            saturation=0.1,
            hue=0.1,
            pca_noise=0.1,
            rand_gray=0.3,
            mean=True,
            std=True,
        )
    )


def ends(mx):
    """What becomes of a last batch that is not full."""
    found = []
    for handle in ("pad", "discard"):
        found += batches(
            mx.image.ImageIter(
                3,
                (3, 20, 20),
                path_root=str(IMAGES),
                imglist=listed([[0, 1], [2, 3], [4, 5], [6, 7]]),
                label_width=2,
                last_batch_handle=handle,
            )
        )
    return found


def detection(mx):
    """Batches of images with objects, with every change."""
    entries = listed([np.array(o, "float32") for o in OBJECTS])
    return batches(
        mx.image.ImageDetIter(
            2,
            (3, 20, 20),
            path_root=str(IMAGES),
            imglist=entries,
            rand_crop=0.7,
            rand_pad=0.6,
            rand_gray=0.3,
            rand_mirror=True,
            mean=True,
            std=True,
            brightness=0.1,
            contrast=0.1,
            saturation=0.1,
            hue=0.1,
            pca_noise=0.1,
            min_object_covered=0.2,
            resize=30,
        )
    )


def objects(augment, mx, times=6):
    """An augmenter of images with objects, several times."""
    label = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.3, 0.3, 0.9, 0.95]], "float32")
    found = []
    for i in range(times):
        out, rows = augment(image(mx, i % 4), label.copy())
        found += [out, rows]
    return found


def det_flip(mx):
    """Mirrored."""
    return objects(mx.image.DetHorizontalFlipAug(0.5), mx)


def det_crop(mx):
    """Windows that hold enough of the objects, or none."""
    return [
        v
        for covered, area, eject in ((0.5, (0.2, 0.9), 0.3), (0.9, (0.05, 0.9), 0.9), (0.1, (0.3, 2.0), 0.5))
        for v in objects(mx.image.DetRandomCropAug(covered, (0.5, 2), area, eject, 10), mx)
    ]


def det_pad(mx):
    """Larger images."""
    return [
        v for ratio in ((0.7, 1.3), 1.0, (0.3, 0.5)) for v in objects(mx.image.DetRandomPadAug(ratio, (1.0, 3.0)), mx)
    ]


CASES = {
    f.__name__: f
    for f in (
        read,
        resize,
        resize_short,
        border,
        sizes,
        crops,
        sized,
        normalize,
        rotate,
        colours,
        force,
        dumps,
        classes,
        ends,
        detection,
        det_flip,
        det_crop,
        det_pad,
    )
}


def run(mx, name):
    """The arrays of a case, as NumPy's."""
    random.seed(5)
    np.random.seed(5)
    return [v.asnumpy() if isinstance(v, mx.nd.NDArray) else np.asarray(v) for v in CASES[name](mx)]
