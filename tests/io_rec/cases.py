"""Cases for the golden files: read by `make_golden.py` under MXNet and by the tests under mxcore."""

from __future__ import annotations

import struct

MAGIC = struct.pack("<I", 0xCED7230A)


def payloads():
    """Payloads that hold the magic word in every position that matters."""
    return [
        b"",
        *(b"abcd"[:n] for n in range(1, 5)),
        MAGIC,
        MAGIC + MAGIC,
        b"xxxx" + MAGIC + b"yy",
        b"xx" + MAGIC + b"yy",
        b"1234" + MAGIC + MAGIC + b"5",
        MAGIC[1:] + MAGIC,
        MAGIC + b"z",
        b"12345678" + MAGIC,
        MAGIC[:3],
        bytes(9),
    ]


def _case(shape=(3, 16, 20), **parameters):
    record, kind = parameters.pop("record", 0), parameters.pop("kind", "ImageRecordIter")
    return {"parameters": {"data_shape": shape, **parameters}, "record": record, "iter": kind}


_MEAN = {"mean_r": 10, "mean_g": 20, "mean_b": 30, "std_r": 2, "std_g": 3, "std_b": 4, "scale": 0.5}

AUGMENT = {
    "centre": _case(),
    "whole": _case((3, 24, 36)),
    "grey": _case((1, 16, 20)),
    "grey stored": _case((1, 16, 20), record=1),
    "colour of grey": _case(record=1),
    "alpha": _case((4, 16, 20), record=2),
    "alpha normalized": _case((4, 16, 20), record=2, mean_a=5, std_a=2, **_MEAN),
    **{f"shrink {m}": _case((3, 12, 15), resize=14, inter_method=m) for m in (0, 1, 2, 3, 4, 9)},
    **{f"enlarge {m}": _case((3, 30, 40), resize=33, inter_method=m) for m in (0, 1, 2, 3, 4, 9)},
    "too small": _case((3, 40, 44)),
    "too flat": _case((3, 30, 30)),
    "too narrow": _case((3, 20, 50)),
    "mirror": _case(mirror=True),
    "mirror both": _case(mirror=True, rand_mirror=True),
    "normalized": _case(**_MEAN),
    "scale": _case(scale=1 / 255),
    "normalized mirror": _case(mirror=True, **_MEAN),
    "rotate": _case(rotate=30, fill_value=9),
    "rotate 90": _case((3, 36, 24), rotate=90),
    "rotate negative": _case(rotate=-20),
    "pad": _case((3, 30, 44), pad=4, fill_value=7),
    "scaled": _case((3, 12, 18), max_random_scale=0.5, min_random_scale=0.5),
    "largest": _case((3, 20, 24), max_img_size=28),
    "smallest": _case((3, 30, 40), min_img_size=30),
    "aspect": _case((3, 14, 14), max_aspect_ratio=1.5, min_aspect_ratio=1.5),
    "resized crop": _case(
        (3, 14, 14), random_resized_crop=True, min_random_area=1, max_aspect_ratio=1.5, min_aspect_ratio=1.5
    ),
    "resized crop too wide": _case(
        (3, 14, 14), random_resized_crop=True, min_random_area=1, max_aspect_ratio=4, min_aspect_ratio=4
    ),
    "square": _case((3, 14, 14), max_crop_size=20, min_crop_size=20),
    "uint8": _case(dtype="uint8", **_MEAN),
    "int8": _case(dtype="int8", mean_r=128, mean_g=127.5, mean_b=10.4, scale=0.7),
    "uint8 iter": _case(kind="ImageRecordUInt8Iter"),
    "int8 iter": _case(kind="ImageRecordInt8Iter"),
    "version 1": _case(kind="ImageRecordIter_v1", **_MEAN),
}

DETECTION = {
    "force": {"data_shape": (3, 16, 16)},
    "grey": {"data_shape": (1, 16, 16)},
    "fit": {"data_shape": (3, 16, 16), "resize_mode": "fit"},
    "fit large": {"data_shape": (3, 50, 50), "resize_mode": "fit"},
    "shrink": {"data_shape": (3, 50, 50), "resize_mode": "shrink"},
    "normalized": {"data_shape": (3, 16, 16), **_MEAN},
    "resize": {"data_shape": (3, 16, 16), "resize": 20},
    "mirror": {"data_shape": (3, 16, 16), "rand_mirror_prob": 1.0},
    "padded": {"data_shape": (3, 16, 16), "label_pad_width": 20, "label_pad_value": -7},
}

ROUNDS = (2, 3, 4, 5, 7, 10, 12)
CSV = ((3, True), (3, False), (7, True), (2, True))
SHUFFLED = tuple(
    (handle, shuffle, size)
    for handle in ("pad", "discard", "roll_over")
    for shuffle in (False, True)
    for size in (2, 3, 7, 9)
)
