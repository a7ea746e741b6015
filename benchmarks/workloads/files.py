"""Files, pictures, batches and stores."""

from __future__ import annotations

from pathlib import Path

from .. import stores
from . import Workload

ARRAYS, BATCH, WORKERS = 10, 64, 2


def _saved(mx, folder, size):
    arrays, file = [mx.nd.ones(size) for _ in range(ARRAYS)], str(Path(folder, mx.__name__))
    mx.nd.waitall()

    def run():
        mx.nd.save(file, arrays)
        loaded = mx.nd.load(file)
        mx.nd.waitall()
        return loaded

    return run


def _saved_torch(torch, folder, size):
    arrays, file = [torch.ones(size) for _ in range(ARRAYS)], str(Path(folder, "torch"))

    def run():
        torch.save(arrays, file)
        return torch.load(file)

    return run


def _write_records(folder, count):
    import cv2
    import numpy as np

    import mxcore as mx

    rng = np.random.default_rng(0)
    records = mx.recordio.MXRecordIO(str(Path(folder, "pictures.rec")), "w")
    for i in range(count):
        picture = cv2.resize(rng.integers(0, 256, (40, 50, 3), dtype="uint8"), (400, 320))
        records.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, i % 10, i, 0), picture))
    records.close()


def _records(mx, folder, count):
    batches = mx.io.ImageRecordIter(
        path_imgrec=str(Path(folder, "pictures.rec")),
        data_shape=(3, 224, 224),
        batch_size=min(32, count),
        resize=256,
        rand_crop=True,
        rand_mirror=True,
        preprocess_threads=WORKERS,
    )

    def run():
        batches.reset()
        for batch in batches:
            batch.data[0].wait_to_read()

    return run


def _pairs(base, count):
    """A data set that makes each picture when it is asked for it, as users write them."""
    import numpy as np

    pictures = np.random.RandomState(0).randint(0, 256, (count, 3, 32, 32)).astype("uint8")

    class Pairs(base):
        def __len__(self):
            return count

        def __getitem__(self, i):
            return (pictures[i].astype("float32") - 128) / 64, i % 10

    return Pairs()


def _loader(mx, count):
    data = mx.gluon.data
    loader = data.DataLoader(_pairs(data.Dataset, count), BATCH, shuffle=True, num_workers=WORKERS)

    def run():
        for x, _ in loader:
            x.wait_to_read()

    return run


def _loader_torch(torch, count):
    data = torch.utils.data
    options = {"shuffle": True, "num_workers": WORKERS, "persistent_workers": True}
    loader = data.DataLoader(_pairs(data.Dataset, count), BATCH, **options)

    def run():
        for _ in loader:
            pass

    return run


def _store(mx, kind, number):
    return stores.dense(mx, kind, number)


WORKLOADS = (
    Workload("save + load 100 MB", 0.7, _saved, _saved_torch, (10 * 2**20 // 4,), (10,), folder=True),
    Workload("ImageRecordIter, 256 JPEGs", 0.3, _records, None, (256,), (4,), folder=True, files=_write_records),
    Workload("DataLoader, 8192 pictures", 1, _loader, _loader_torch, (8192,), (2 * BATCH,)),
    Workload("KVStore push + pull 40 MB", 0.9, _store, None, ("local", 10)),
)
