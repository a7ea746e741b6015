"""Samples of the operators of :mod:`mxcore.ops.image`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values
from .augmentation import NO_JITTER
from .operators import resize_dtypes

__all__ = ["SAMPLES"]


_AT = {"x": 1, "y": 2, "width": 3, "height": 2}


def _flipped_or_not(axis: int) -> Callable[..., None]:
    def check(inputs: Any, outputs: Any) -> None:
        x, y = inputs[0], outputs[0]
        assert (x == y).all() or (np.flip(x, axis) == y).all()

    return check


_PIXELS = Values((4, 5, 3), 0, 255)


def _within(low: float, high: float) -> Callable[..., None]:
    """A sample's check: the image times one number between two."""

    def check(inputs: Any, outputs: Any) -> None:
        ratio = outputs[0].astype(np.float64) / inputs[0].astype(np.float64)
        assert low - 1e-3 <= ratio.min() and ratio.max() <= high + 1e-3 and np.ptp(ratio) < 1e-2 * ratio.max() + 1e-3

    return check


_PALE = "MXNet leaves the result uninitialised where there is nothing to do"


def _near(inputs: Any, outputs: Any) -> None:
    """A sample's check of small changes."""
    assert np.isfinite(outputs[0]).all() and 0 < abs(outputs[0] - inputs[0]).max() < 150


_FLIPPED = [
    Sample((4, 4, 3), mxnet="forward only: MXNet's gradient is not flipped"),
    Sample((2, 3, 4, 3), mxnet="single images only"),
    Sample(Ints((6, 4, 3), 0, 256, "uint8")),
    Sample(Ints((4, 2, 1), -9, 9, "int32")),
    Sample((2, 6, 1), mxnet="forward only: MXNet's gradient is not flipped"),
    Sample(Ints((3, 5, 2), -9, 9, "int32"), mxnet="it leaves the middle of odd lengths uninitialised"),
]


def _maybe_flipped(axis: int) -> list[Sample]:
    return [
        Sample(
            (3, 4, 3), check=_flipped_or_not(axis), mxnet="it leaves the result uninitialised where it does not flip"
        ),
        Sample(
            (3, 1, 3) if axis == -2 else (1, 3, 3), mxnet="it leaves the result uninitialised where it does not flip"
        ),
    ]


def _changed(name: str, told: Any = True) -> list[Sample]:
    """Uses of a change by a random factor; `told` is what MXNet does for factors that change anything."""
    hue = name == "hue"
    samples = [
        Sample(
            _PIXELS,
            params={"min_factor": f, "max_factor": f},
            grad=False,
            mxnet=True if f == 1.0 else told,
            tol=20,
            dtypes="float32" if hue else "float32 float64",
        )
        for f in (1.0, 1.3, 0.4)
    ]
    samples += [
        Sample(
            Values((4, 5, 1), 0, 255),
            params={"min_factor": 1.5, "max_factor": 1.5},
            grad=False,
            mxnet="MXNet leaves the result uninitialised" if hue else True,
        )
    ]
    if not hue:
        samples += [
            Sample(
                Ints((3, 2, 1), 0, 256, "uint8"),
                params={"min_factor": "0.7", "max_factor": "0.7"},
                grad=False,
                dtypes="float32",
            )
        ]
    if name == "brightness":
        samples += [
            Sample(
                Values((4, 5, 3), 10, 255),
                params={"min_factor": 0.5, "max_factor": 1.5},
                grad=False,
                check=_within(0.5, 1.5),
            ),
            Sample(Ints((4, 5, 3), 0, 256, "uint8"), params={"min_factor": 1.3, "max_factor": 1.3}, grad=False),
        ]
    return samples


#: A PNG file of 2 x 1 pixels, (255, 0, 10) and (20, 30, 200).
_PNG = np.frombuffer(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000f49444154789c63f8cf"
        "c02522770200076902047be11aa90000000049454e44ae426082"
    ),
    np.uint8,
)


SAMPLES = {
    "_image_to_tensor": [
        Sample(Values((4, 5, 3), 0, 255), grad=False),
        Sample(Ints((3, 2, 1), 0, 256, "uint8")),
        Sample(Values((2, 3, 4, 5), 0, 255), dtypes="float32", grad=False),
        Sample(Ints((2, 2, 3), -5, 300, "int32")),
        Sample((0, 2, 3), grad=False),
    ],
    "_backward_image_to_tensor": [Sample((3, 4, 5), (4, 5, 3), dtypes="float32", grad=False, mxnet="internal")],
    "_image_normalize": [
        Sample((3, 2, 4), params={"mean": (0.0, 1.0, 2.0), "std": (3.0, 2.0, 1.0)}),
        Sample((2, 1, 3, 2), params={"mean": (0.5,), "std": (0.25,)}),
        Sample((2, 3, 3, 2), params={"mean": (0.5,), "std": (0.25, 0.5, 2.0)}),
        Sample((3, 2, 4), mxnet="MXNet refuses its own defaults"),
        Sample(Ints((3, 2, 4), 3, 200, "uint8"), params={"mean": (1.0,), "std": (2.0,)}),
        Sample((0, 3, 2, 4), params={"mean": (0.5,), "std": (0.25,)}),
        Sample((1, 5, 1), params={"mean": "(0.5,)", "std": "(0.25,)"}),
    ],
    "_image_crop": [
        Sample((5, 6, 3), params=_AT),
        Sample((2, 5, 6, 1), params={**_AT, "width": 5}),
        Sample(Ints((5, 6, 3), 0, 256, "uint8"), params=_AT),
        Sample((5, 6, 3), params={"x": 0, "y": 0, "width": 6, "height": 5}, dtypes="float16 float32 float64"),
    ],
    "_backward_image_crop": [Sample((2, 3, 3), (5, 6, 3), params=_AT, mxnet="internal")],
    "_image_resize": [
        *(Sample((5, 6, 3), params={"size": (4, 3), "interp": i}, tol=5, dtypes=resize_dtypes(i)) for i in range(5)),
        *(Sample((4, 3, 1), params={"size": (7, 5), "interp": i}, tol=5, dtypes=resize_dtypes(i)) for i in range(5)),
        Sample((5, 7, 3), params={"size": (3,), "keep_ratio": True}, tol=5, dtypes="float32"),
        Sample((7, 4, 2), params={"size": (6,), "keep_ratio": True}, tol=5, dtypes="float32"),
        Sample((2, 4, 4, 3), params={"size": (2,)}),
        Sample(Ints((7, 6, 3), 0, 256, "uint8"), params={"size": (3, 5)}, dtypes="float32", step=1),
        Sample(Ints((3, 4, 1), 0, 256, "uint8"), params={"size": (9, 5), "interp": 0}, dtypes="float32"),
        Sample((3, 4, 5), params={"size": (4, 3)}, tol=5, dtypes="float32"),
    ],
    "_backward_image_resize": [
        Sample((3, 4, 3), (5, 6, 3), params={"size": (4, 3), "interp": i}, mxnet="internal", tol=5) for i in range(5)
    ],
    "_image_flip_if": [
        Sample((2, 3, 3), [c], params={"axis": -2}, grad=(True, False), mxnet="internal") for c in (0.0, 1.0)
    ],
    "_image_flip_left_right": _FLIPPED,
    "_image_flip_top_bottom": _FLIPPED,
    "_image_random_flip_left_right": _maybe_flipped(-2),
    "_image_random_flip_top_bottom": _maybe_flipped(-3),
    "_image_random_brightness": _changed("brightness"),
    "_image_random_contrast": _changed("contrast"),
    "_image_random_saturation": _changed("saturation", "MXNet takes 0.114 times blue for the grey"),
    "_image_random_hue": _changed("hue"),
    "_image_random_color_jitter": [
        Sample(_PIXELS, params=NO_JITTER, grad=False, mxnet=_PALE),
        Sample(
            Values((4, 5, 3), 50, 200), params={**NO_JITTER, "brightness": 0.2}, grad=False, check=_within(0.8, 1.2)
        ),
        Sample(Values((4, 5, 3), 50, 200), params=dict.fromkeys(NO_JITTER, 0.1), grad=False, check=_near),
        Sample(Values((4, 5, 3), 50, 200), params={**NO_JITTER, "contrast": 0.1}, grad=False, check=_near),
    ],
    "_image_adjust_lighting": [
        Sample(_PIXELS, params={"alpha": (0.1, -0.2, 0.3)}, tol=4),
        Sample(Ints((3, 4, 3), 0, 256, "uint8"), params={"alpha": (0.1, 0.2, 0.3)}),
        Sample(Values((1, 7, 3), -50, 300), params={"alpha": "(-0.5, 0.0, 0.25)"}, tol=4),
        Sample(
            Values((3, 4, 1), 0, 255), params={"alpha": (0.1, 0.2, 0.3)}, mxnet="MXNet leaves the result uninitialised"
        ),
    ],
    "_image_random_lighting": [
        Sample(_PIXELS, params={"alpha_std": 0.0}),
        Sample(Values((2, 3, 3), 50, 200), params={"alpha_std": 0.1}, check=_near),
        Sample(Ints((2, 5, 3), 0, 256, "uint8"), params={"alpha_std": "0.0"}),
        Sample(Values((2, 3, 3), 50, 200), check=_near),
    ],
    "_cvimdecode": [
        Sample(_PNG, grad=False),
        Sample(_PNG, params={"flag": 0}, grad=False),
        Sample(_PNG, params={"to_rgb": False}, grad=False),
    ],
    "_cvimresize": [
        Sample(Ints((5, 6, 3), 0, 256, "uint8"), params={"w": 3, "h": 4, "interp": 0}, grad=False),
        *(
            Sample((5, 6, 3), params={"w": 3, "h": 4, "interp": i}, grad=False, tol=5, dtypes=resize_dtypes(i))
            for i in range(5)
        ),
        Sample((5, 6, 3), params={"w": 8, "h": 4}, grad=False, tol=5, dtypes="float32"),
        Sample((5, 6, 1), params={"w": 3, "h": 9, "interp": 2}, grad=False, tol=5, dtypes="float32"),
    ],
    "_cvcopyMakeBorder": [
        *(
            Sample(
                Ints((3, 4, 3), 0, 256, "uint8"),
                params={"top": 1, "bot": 0, "left": 2, "right": 1, "type": t, "value": 9.0},
                grad=False,
            )
            for t in range(5)
        ),
        Sample((3, 4, 3), params={"top": 0, "bot": 2, "left": 0, "right": 1, "values": (1.0, 2.0, 3.0)}, grad=False),
    ],
}
