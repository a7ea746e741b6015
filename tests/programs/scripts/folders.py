"""A training script for folders of pictures: transforms, loaders, warm-up, label smoothing, best and last checkpoints, resume to the same numbers, logging to a file."""

import mxnet as mx, numpy as np, os, struct, zlib, logging, argparse
from mxnet import nd, gluon, autograd
from mxnet.gluon import nn
from mxnet.gluon.data.vision import transforms, ImageFolderDataset


def png(a):
    raw = b"".join(b"\0" + a[i].tobytes() for i in range(a.shape[0]))
    ch = lambda t, b: struct.pack(">I", len(b)) + t + b + struct.pack(">I", zlib.crc32(t + b) & 0xFFFFFFFF)
    return (
        b"\x89PNG\r\n\x1a\n"
        + ch(b"IHDR", struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, 2, 0, 0, 0))
        + ch(b"IDAT", zlib.compress(raw))
        + ch(b"IEND", b"")
    )


rs = np.random.RandomState(0)
for part, n in (("train", 6), ("val", 3)):
    for c in ("ant", "bee", "cat"):
        os.makedirs(os.path.join("data", part, c))
        for i in range(n):
            open(os.path.join("data", part, c, "%d.png" % i), "wb").write(
                png((rs.randint(0, 120, (16, 18, 3)) + 60 * "abc".index(c[0])).astype("u1"))
            )
open("data/train/ant/readme.txt", "w").write("x")
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--resume", default="")
opt = parser.parse_args([])
logger = logging.getLogger("train")
logger.setLevel(logging.INFO)
fh = logging.FileHandler("train.log")
logger.addHandler(fh)
logger.propagate = False
logger.info(opt)
norm = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
tt = transforms.Compose([transforms.Resize(14), transforms.CenterCrop(12), transforms.ToTensor(), norm])
tr_ds = ImageFolderDataset("data/train").transform_first(tt)
va_ds = ImageFolderDataset("data/val", flag=1).transform_first(tt)
print(len(tr_ds), len(va_ds), tr_ds[0][0].shape, tr_ds[17][1], "%.4f" % tr_ds[3][0].mean().asscalar())
tl = gluon.data.DataLoader(tr_ds, 6, False, num_workers=0, last_batch="rollover")
vl = gluon.data.DataLoader(va_ds, 4)


def build(pf):
    net = nn.HybridSequential(prefix=pf)
    with net.name_scope():
        net.add(
            nn.Conv2D(6, 3, padding=1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.MaxPool2D(),
            nn.Conv2D(8, 3, groups=2, use_bias=False),
            nn.BatchNorm(),
            nn.LeakyReLU(0.1),
            nn.GlobalAvgPool2D(),
            nn.Flatten(),
            nn.Dense(3),
        )
    net.initialize(mx.init.MSRAPrelu())
    net(nd.zeros((1, 3, 12, 12)))
    for i, (k, p) in enumerate(net.collect_params(".*weight").items()):
        p.set_data(nd.array(np.random.RandomState(i).randn(*p.shape) * 0.3))
    return net


class Warm(mx.lr_scheduler.LRScheduler):
    def __init__(self, base, n, tot):
        super().__init__(base)
        self.n, self.tot = n, tot

    def __call__(self, t):
        return (
            self.base_lr * (t + 1) / self.n
            if t < self.n
            else self.base_lr * 0.5 * (1 + np.cos(np.pi * (t - self.n) / (self.tot - self.n)))
        )


def smooth(l, nc, eta=0.1):
    l = l if isinstance(l, (list, tuple)) else [l]
    return [nd.one_hot(x, depth=nc, on_value=1 - eta + eta / nc, off_value=eta / nc) for x in l]


def test(net, ctx):
    acc, top = mx.metric.Accuracy(), mx.metric.TopKAccuracy(2)
    for b in vl:
        d, l = [gluon.utils.split_and_load(v, ctx, even_split=False) for v in b[:2]]
        o = [net(x) for x in d]
        acc.update(l, o)
        top.update(l, o)
    return acc.get()[1], top.get()[1]


def train(net, epochs, start=0, trainer=None, ctx=[mx.cpu()]):
    trainer = trainer or gluon.Trainer(
        net.collect_params(), "nag", {"momentum": 0.9, "wd": 1e-4, "lr_scheduler": Warm(opt.lr, 3, 12)}
    )
    [setattr(p, "wd_mult", 0.0) for k, p in net.collect_params(".*gamma|.*beta|.*bias").items()]
    L = gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=False)
    best = -1
    for e in range(start, epochs):
        rmse, tot = mx.metric.RMSE(), 0
        for i, b in enumerate(tl):
            d = gluon.utils.split_and_load(b[0], ctx)
            l = gluon.utils.split_and_load(b[1], ctx)
            hs = smooth(l, 3)
            with autograd.record():
                o = [net(x) for x in d]
                ls = [L(p, y) for p, y in zip(o, hs)]
            for q in ls:
                q.backward()
            trainer.step(b[0].shape[0])
            rmse.update(hs, [nd.softmax(p, axis=1) for p in o])
            tot += sum(q.sum().asscalar() for q in ls)
        a, t = test(net, ctx)
        logger.info("[Epoch %d] lr %.4f", e, trainer.learning_rate)
        print(e, "%.4f %.4f lr %.5f acc %.3f %.3f" % (tot, rmse.get()[1], trainer.learning_rate, a, t))
        if a > best:
            best = a
            net.save_parameters("%.2f-best.params" % a)
        net.save_parameters("e%d.params" % e)
        trainer.save_states("e%d.states" % e)
    return trainer


a = build("a_")
a.hybridize()
train(a, 4)
b = build("b_")
b.load_parameters("e1.params")
tb = gluon.Trainer(b.collect_params(), "nag", {"momentum": 0.9, "wd": 1e-4, "lr_scheduler": Warm(opt.lr, 3, 12)})
tb.load_states("e1.states")
[setattr(p, "wd_mult", 0.0) for k, p in b.collect_params(".*gamma|.*beta|.*bias").items()]
train(b, 4, 2, tb)
print(
    np.abs(a(nd.ones((1, 3, 12, 12))).asnumpy() - b(nd.ones((1, 3, 12, 12))).asnumpy()).max() < 1e-3,
    sorted(f for f in os.listdir(".") if f.endswith("states")),
    open("train.log").read().splitlines()[0],
)
