"""Order by NumPy's and Python's seeds: shuffles of iterators and samplers, augmenters, crops, detection crops, buckets, splits; the streams are the interpreter's."""

import mxnet as mx, numpy as np, random, os, struct, zlib
from mxnet import nd, gluon

rs = np.random.RandomState(0)
im = nd.array(rs.randint(0, 255, (24, 30, 3)), dtype="uint8")
f = im.astype("float32")


def seed(k=3):
    random.seed(k)
    np.random.seed(k)


seed()
it = mx.io.NDArrayIter(np.arange(10.0), np.arange(10), 4, shuffle=True)
print([b.label[0].asnumpy().tolist() for b in it])
it.reset()
print([b.label[0].asnumpy().tolist() for b in it])
seed()
print(list(gluon.data.RandomSampler(7)), list(gluon.data.RandomSampler(7)))
seed()
print([a.asnumpy().tolist() for a in gluon.data.DataLoader(gluon.data.SimpleDataset(list(range(7))), 3, shuffle=True)])
sents = [[1, 2], [3, 4, 5], [6, 7], [8, 9, 1], [2, 3], [4, 5, 6]] * 3
seed()
b = mx.rnn.BucketSentenceIter(sents, 2, buckets=[2, 3], invalid_label=0)
print([x.data[0].asnumpy().astype(int).tolist() for x in b])
b.reset()
print([x.bucket_key for x in b])
for name, g in (
    ("crop", lambda: mx.image.random_crop(im, (8, 9))[1]),
    ("size", lambda: mx.image.random_size_crop(im, (8, 9), (0.3, 0.9), (0.75, 1.33))[1]),
    ("fixed", lambda: mx.image.center_crop(im, (8, 9))[1]),
):
    seed()
    print(name, [g() for _ in range(4)])
augs = [
    ("flip", mx.image.HorizontalFlipAug(0.5), f),
    ("bright", mx.image.BrightnessJitterAug(0.4), f),
    ("contrast", mx.image.ContrastJitterAug(0.4), f),
    ("sat", mx.image.SaturationJitterAug(0.4), f),
    ("hue", mx.image.HueJitterAug(0.4), f),
    ("jit", mx.image.ColorJitterAug(0.3, 0.3, 0.3), f),
    ("light", mx.image.LightingAug(0.2, np.array([55.46, 4.794, 1.148]), np.eye(3) * 0.5), f),
    ("gray", mx.image.RandomGrayAug(0.5), f),
    ("order", mx.image.RandomOrderAug([mx.image.BrightnessJitterAug(0.2), mx.image.HorizontalFlipAug(0.5)]), f),
    ("rcrop", mx.image.RandomCropAug((6, 7)), im),
    ("seq", mx.image.SequentialAug([mx.image.RandomCropAug((6, 7)), mx.image.CastAug()]), im),
]
for n, a, x in augs:
    seed()
    print(n, [round(float(a(x).astype("float32").mean().asscalar()), 2) for _ in range(4)])
lab = np.array([[0, 0.1, 0.2, 0.5, 0.6], [1, 0.3, 0.3, 0.9, 0.8]])
for n, a in (
    ("drop", mx.image.DetRandomCropAug(min_object_covered=0.3, area_range=(0.2, 0.9), max_attempts=20)),
    ("dpad", mx.image.DetRandomPadAug(area_range=(1.1, 2.5), max_attempts=20)),
    ("dflip", mx.image.DetHorizontalFlipAug(0.5)),
    (
        "dsel",
        mx.image.DetRandomSelectAug(
            [mx.image.DetHorizontalFlipAug(0.5), mx.image.DetRandomCropAug(0.1)], skip_prob=0.4
        ),
    ),
):
    seed()
    out = [a(im, lab.copy()) for _ in range(4)]
    print(n, [o[0].shape for o in out], [round(float(np.asarray(o[1]).sum()), 3) for o in out])


def png(a):
    raw = b"".join(b"\0" + a[i].tobytes() for i in range(a.shape[0]))
    ch = lambda t, b: struct.pack(">I", len(b)) + t + b + struct.pack(">I", zlib.crc32(t + b) & 0xFFFFFFFF)
    return (
        b"\x89PNG\r\n\x1a\n"
        + ch(b"IHDR", struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, 2, 0, 0, 0))
        + ch(b"IDAT", zlib.compress(raw))
        + ch(b"IEND", b"")
    )


for i in range(5):
    open("%d.png" % i, "wb").write(png(rs.randint(0, 255, (12, 14, 3)).astype("u1")))
seed()
it = mx.image.ImageIter(
    2,
    (3, 8, 8),
    imglist=[[float(i), "%d.png" % i] for i in range(5)],
    path_root=".",
    shuffle=True,
    rand_crop=True,
    rand_mirror=True,
)
print(
    [
        (b.label[0].asnumpy().tolist(), b.pad, [round(float(v), 1) for v in b.data[0].asnumpy().mean(axis=(1, 2, 3))])
        for b in it
    ]
)
it.reset()
print([b.label[0].asnumpy().tolist() for b in it])
seed()
it = mx.image.ImageDetIter(
    2,
    (3, 8, 8),
    imglist=[[np.array([2, 5, i, 0.1, 0.2, 0.6, 0.7]), "%d.png" % i] for i in range(4)],
    path_root=".",
    shuffle=True,
    rand_mirror=True,
    rand_crop=0.5,
)
print([b.label[0].asnumpy().round(2).tolist() for b in it])
seed()
print(
    nd.array(np.random.rand(2)),
    mx.test_utils.rand_shape_2d(),
    mx.test_utils.rand_shape_nd(3),
    mx.test_utils.random_arrays((2,)),
    mx.test_utils.random_sample([1, 2, 3, 4], 2),
)
seed()
ds = gluon.data.SimpleDataset(list(range(9)))
tr = gluon.data.BatchSampler(gluon.data.RandomSampler(9), 4, "rollover")
print(list(tr), list(tr))
words = ["a", "b", "c"]
enc = mx.rnn.encode_sentences([["a", "b"], ["c", "a"]], start_label=1)
print(enc)
