"""Make the golden files beside this script with the real MXNet.

    python tests/io_rec/make_golden.py        # in an environment with mxnet 1.9.1, and no need of OpenCV

framing.rec/.idx  records whose payloads hold the magic word, and labels of all kinds images.rec/.idx   one
image three times over (colour, grey, with alpha), as PNG augment.npz       what ImageRecordIter makes of
it, by case objects.rec/.npz  the same for ImageDetRecordIter batches.json      labels and pads of the
batches of ImageRecordIter, CSVIter and NDArrayIter, epoch after epoch
"""

from __future__ import annotations

import json
import os
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from cases import AUGMENT, CSV, DETECTION, ROUNDS, SHUFFLED, payloads

GOLDEN = Path(__file__).parent / "golden"


def png(pixels):
    """Encode (height, width, 1, 3 or 4) uint8 without any library."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def picture(height=24, width=36):
    """A smooth image with alpha, so that interpolations differ little."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 7) + np.cos(y / 5), np.sin((x + y) / 9), np.cos(x / 4) * np.sin(y / 6), np.sin(y / 8)]
    return np.stack([np.rint(127 + 60 * w) for w in waves], -1).astype(np.uint8)


def write(mx, stem, records):
    record = mx.recordio.MXIndexedRecordIO(str(GOLDEN / f"{stem}.idx"), str(GOLDEN / f"{stem}.rec"), "w")
    for i, data in enumerate(records):
        record.write_idx(i, data)
    record.close()


def drain(it):
    return [[b.label[0].asnumpy().ravel().tolist() if b.label else None, int(b.pad)] for b in it]


def main():
    import mxnet as mx

    def packed(label, data, number=0):
        return mx.recordio.pack(mx.recordio.IRHeader(0, label, number, 0), data)

    GOLDEN.mkdir(exist_ok=True)
    labels = [3, 2.5, [1, 2, 3], np.arange(7, dtype="float32")]
    write(mx, "framing", payloads() + [packed(label, b"image", 2**40 + i) for i, label in enumerate(labels)])

    image = picture()
    write(mx, "images", [packed(i, png(p)) for i, p in enumerate((image[..., :3], image[..., :1], image))])
    made = {}
    for name, case in AUGMENT.items():
        kind, record = case.get("iter", "ImageRecordIter"), case.get("record", 0)
        with tempfile.TemporaryDirectory() as folder:
            one = os.path.join(folder, "one.rec")
            w = mx.recordio.MXRecordIO(one, "w")
            w.write(
                mx.recordio.MXIndexedRecordIO(str(GOLDEN / "images.idx"), str(GOLDEN / "images.rec"), "r").read_idx(
                    record
                )
            )
            w.close()
            it = getattr(mx.io, kind)(path_imgrec=one, batch_size=1, verbose=False, **case["parameters"])
            made[name] = it.next().data[0].asnumpy()[0]
    np.savez_compressed(GOLDEN / "augment.npz", **made)

    one = [2, 5, 1, 0.1, 0.2, 0.5, 0.6]
    objects = [one, [*one, 3, 0.3, 0.3, 0.9, 0.8]]
    write(mx, "objects", [packed(label, png(image[..., :3]), i) for i, label in enumerate(objects)])
    made = {}
    for name, parameters in DETECTION.items():
        it = mx.io.ImageDetRecordIter(
            path_imgrec=str(GOLDEN / "objects.rec"), batch_size=2, verbose=False, **parameters
        )
        batch = it.next()
        made[f"{name}.data"], made[f"{name}.label"] = batch.data[0].asnumpy(), batch.label[0].asnumpy()
    np.savez_compressed(GOLDEN / "objects.npz", **made)

    batches = {}
    tiny = png(np.zeros((2, 2, 1), np.uint8))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ten.rec")
        w = mx.recordio.MXRecordIO(path, "w")
        for i in range(10):
            w.write(packed(i, tiny))
        w.close()
        for size in ROUNDS:
            it = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(1, 2, 2), batch_size=size, verbose=False)
            batches[f"image {size}"] = epochs = []
            for _ in range(4):
                epochs.append(drain(it))
                it.reset()
        table = os.path.join(folder, "a.csv")
        np.savetxt(table, np.arange(7), fmt="%d")
        for size, round_batch in CSV:
            it = mx.io.CSVIter(
                data_csv=table, data_shape=(1,), label_csv=table, batch_size=size, round_batch=round_batch
            )
            batches[f"csv {size} {round_batch}"] = epochs = []
            for _ in range(4):
                epochs.append(drain(it))
                it.reset()
    for handle, shuffle, size in SHUFFLED:
        np.random.seed(0)
        it = mx.io.NDArrayIter(np.zeros(7), np.arange(7), size, shuffle=shuffle, last_batch_handle=handle)
        batches[f"array {handle} {shuffle} {size}"] = epochs = []
        for _ in range(4):
            epochs.append(drain(it))
            it.reset()
    (GOLDEN / "batches.json").write_text(json.dumps(batches, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
