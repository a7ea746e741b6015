"""An epoch over a folder of pictures, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

from pathlib import Path

from .peer import serve

BATCH, SHAPE = 32, (3, 224, 224)


def write(folder, count):
    """Make JPEG pictures of some 20 KB each, and the list of them; by our side, since both read the same."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(0)
    (folder / "all" / "class").mkdir(parents=True)
    for i in range(count):
        cv2.imwrite(
            str(folder / "all" / "class" / f"{i}.jpg"),
            cv2.resize(rng.integers(0, 256, (40, 50, 3), dtype="uint8"), (400, 320)),
        )
    (folder / "all.lst").write_text("".join(f"{i}\t0\tclass/{i}.jpg\n" for i in range(count)))


def epoch(mx, kind, folder):
    """A function that reads all pictures once, in batches."""
    return {"ImageIter": _image_iter, "DataLoader": _data_loader}[kind](mx, folder)


def _image_iter(mx, folder):
    changes = {"resize": 256, "rand_crop": True, "rand_mirror": True}
    batches = mx.image.ImageIter(
        BATCH, SHAPE, path_imglist=str(Path(folder, "all.lst")), path_root=str(Path(folder, "all")), **changes
    )

    def run():
        batches.reset()
        for batch in batches:
            batch.data[0].wait_to_read()

    return run


def _data_loader(mx, folder):
    data, transforms = mx.gluon.data, mx.gluon.data.vision.transforms
    change = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(SHAPE[1:]), transforms.ToTensor()])
    loader = data.DataLoader(
        data.vision.ImageFolderDataset(str(Path(folder, "all"))).transform_first(change), BATCH, num_workers=2
    )

    def run():
        for batch, _ in loader:
            batch.wait_to_read()

    return run


if __name__ == "__main__":
    import mxnet

    serve(lambda kind, folder: epoch(mxnet, kind, folder))
