"""Samples of the operators in :mod:`mxcore.ops.decode`."""

from __future__ import annotations

import numpy as np

from ...testing.sample import Ints, Sample
from ..image import resize_dtypes

__all__ = ["SAMPLES"]

#: A PNG file of 2 x 1 pixels, (255, 0, 10) and (20, 30, 200).
_PNG = np.frombuffer(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000f49444154789c63f8cf"
        "c02522770200076902047be11aa90000000049454e44ae426082"
    ),
    np.uint8,
)


SAMPLES = {
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
