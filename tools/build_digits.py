"""Build the bundled record file of handwritten digits from the copy that scikit-learn ships.

    python tools/build_digits.py [FOLDER]

writes digits.rec, digits.idx (all), digits_train.idx and digits_test.idx (the fixed split).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
TEST_SHARE = 0.2
SEED = 0


def upscaled(digit):
    """Return an 8 x 8 digit with values 0 to 16 as 28 x 28 pixels with values 0 to 255."""
    import cv2

    large = cv2.resize(digit.astype(np.float32), (28, 28), interpolation=cv2.INTER_CUBIC)
    return np.clip(np.rint(large * (255 / 16)), 0, 255).astype(np.uint8)


def held_out(labels):
    """Return the numbers of the test images: the same share of each digit, drawn once and for all."""
    draw = np.random.RandomState(SEED)
    chosen = []
    for digit in range(10):
        members = draw.permutation(np.flatnonzero(labels == digit))
        chosen += members[: round(TEST_SHARE * len(members))].tolist()
    return set(chosen)


def build(folder):
    """Write the files into a folder."""
    from sklearn.datasets import load_digits

    from mxcore_io_rec.recordio import IRHeader, MXIndexedRecordIO, pack_img

    images, labels = load_digits().images, load_digits().target
    folder.mkdir(parents=True, exist_ok=True)
    with MXIndexedRecordIO(folder / "digits.idx", folder / "digits.rec", "w") as record:
        for i, (image, label) in enumerate(zip(images, labels)):
            header = IRHeader(0, float(label), i, 0)
            record.write_idx(i, pack_img(header, upscaled(image), quality=9, img_fmt=".png"))
        offsets = dict(record.idx)
    test = held_out(labels)
    for name, members in (("test", test), ("train", set(offsets) - test)):
        lines = [f"{i}\t{offsets[i]}\n" for i in sorted(members)]
        (folder / f"digits_{name}.idx").write_text("".join(lines), encoding="ascii", newline="\n")
        print(f"{name}: {len(members)} images")


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "core"), str(ROOT / "plugins" / "io_rec")]
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "plugins/io_rec/mxcore_io_rec/data")
