"""Pictures: crops, iterators, folders."""

import mxnet as mx, numpy as np, os, tempfile
from mxnet.test_utils import *

d = tempfile.mkdtemp()
rs = np.random.RandomState(0)


def png(a):
    import struct, zlib

    raw = b"".join(b"\0" + a[i].tobytes() for i in range(a.shape[0]))
    ch = lambda t, b: struct.pack(">I", len(b)) + t + b + struct.pack(">I", zlib.crc32(t + b) & 0xFFFFFFFF)
    return (
        b"\x89PNG\r\n\x1a\n"
        + ch(b"IHDR", struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, 2, 0, 0, 0))
        + ch(b"IDAT", zlib.compress(raw))
        + ch(b"IEND", b"")
    )


names = []
for c in "ab":
    os.mkdir(os.path.join(d, c))
    for i in range(3):
        n = os.path.join(c, "%d.png" % i)
        open(os.path.join(d, n), "wb").write(png(rs.randint(0, 255, (20, 30, 3)).astype("uint8")))
        names.append(n)
im = mx.image.imread(os.path.join(d, names[0]))
print(im.shape, im.dtype, im.asnumpy().sum())
print(
    mx.image.imresize(im, 10, 8).shape,
    mx.image.resize_short(im, 10).shape,
    mx.image.center_crop(im, (8, 8))[1],
    mx.image.fixed_crop(im, 1, 2, 5, 6).shape,
    mx.image.color_normalize(im.astype("f"), mx.nd.array([1, 2, 3]), mx.nd.array([2, 2, 2])).sum().asscalar(),
)
it = mx.image.ImageIter(
    4,
    (3, 12, 12),
    imglist=[[float(i), n] for i, n in enumerate(names)],
    path_root=d,
    aug_list=mx.image.CreateAugmenter((3, 12, 12), resize=14, mean=True, std=True),
)
for b in it:
    print(b.data[0].shape, b.label[0].asnumpy(), b.pad, "%.3f" % b.data[0].asnumpy()[:2].sum())
ds = mx.gluon.data.vision.ImageFolderDataset(d)
print(len(ds), ds.synsets, ds[4][0].shape, ds[4][1])
from mxnet.gluon.data.vision import transforms

tf = transforms.Compose([transforms.Resize(10), transforms.ToTensor()])
dl = mx.gluon.data.DataLoader(ds.transform_first(tf), 3)
print([x.shape for x, y in dl])
print(
    [
        a.dumps()[:50]
        for a in mx.image.CreateAugmenter((3, 8, 8), rand_crop=True, rand_mirror=True, brightness=0.1, pca_noise=0.1)
    ]
)
s = open(os.path.join(d, "l.lst"), "w")
[s.write("%d\t%d\t%s\n" % (i, i % 2, n)) for i, n in enumerate(names)]
s.close()
it = mx.image.ImageIter(2, (3, 20, 20), path_imglist=os.path.join(d, "l.lst"), path_root=d)
print(next(it).label[0].asnumpy(), it.provide_data)
