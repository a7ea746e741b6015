"""A single shot detector (SSD) for shapes on pictures that it draws itself, in Gluon; it draws what it found, too.

Each place of three feature maps has anchors; for each of them the network says in one pass what is there, and how its
box differs from the anchor. `MultiBoxTarget` says what it should have said, `MultiBoxDetection` what it means.

python ssd_shapes.py
python ssd_shapes.py --epochs 20 --size 96 --hybridize --png found.png
"""

import argparse
import time

import numpy as np
import shapes

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn

SIZES, RATIOS = ((0.2, 0.27), (0.33, 0.4), (0.5, 0.6)), (1, 2, 0.5)
ANCHORS = len(SIZES[0]) + len(RATIOS) - 1
CLASSES = len(shapes.NAMES) + 1


def block(channels):
    """Two convolutions, and half as many places."""
    found = nn.HybridSequential()
    for _ in range(2):
        found.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    found.add(nn.MaxPool2D())
    return found


class SSD(gluon.HybridBlock):
    """Scores of classes (N, anchors, classes), offsets (N, anchors * 4) and the anchors (1, anchors, 4)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.base = nn.HybridSequential()
            self.base.add(*map(block, (16, 32, 48)))
            self.stages, self.classes, self.boxes = (nn.HybridSequential() for _ in range(3))
            for i in range(len(SIZES)):
                self.stages.add(block(64) if i else nn.HybridSequential())
                self.classes.add(nn.Conv2D(ANCHORS * CLASSES, 3, padding=1))
                self.boxes.add(nn.Conv2D(ANCHORS * 4, 3, padding=1))

    def hybrid_forward(self, F, x):
        x, found = self.base(x), []
        for stage, classes, boxes, sizes in zip(self.stages, self.classes, self.boxes, SIZES):
            x = stage(x)
            scores, offsets = (F.transpose(y, axes=(0, 2, 3, 1)) for y in (classes(x), boxes(x)))
            anchors = F.contrib.MultiBoxPrior(x, sizes=sizes, ratios=RATIOS)
            found.append((F.reshape(scores, shape=(0, -1, CLASSES)), F.Flatten(offsets), anchors))
        return tuple(F.concat(*parts, dim=1) for parts in zip(*found))


def train(net, data, trainer, classify, batch_size, rng):
    """One epoch; the mean loss."""
    images, labels = data
    total, order = 0.0, rng.permutation(len(images))
    for i in range(0, len(order) - batch_size + 1, batch_size):
        some = order[i : i + batch_size]
        x, label = nd.array(images[some]), nd.array(labels[some])
        with autograd.record():
            scores, offsets, anchors = net(x)
            with autograd.pause():
                wanted, mask, classes = nd.contrib.MultiBoxTarget(
                    anchors, label, nd.transpose(scores, axes=(0, 2, 1)), negative_mining_ratio=3
                )
            counts = (classes >= 0).expand_dims(2)
            boxes = nd.smooth_l1((offsets - wanted) * mask, scalar=1.0)
            # Sums over anchors, per anchor with a box.
            loss = (classify(scores, classes, counts) * classes.shape[1]).sum() + boxes.sum()
            loss = loss / nd.maximum(mask.sum() / 4, 1)
        loss.backward()
        trainer.step(1)
        total += loss.asscalar()
    return total / (len(order) // batch_size)


def detect(net, images, batch_size=64):
    """For each picture rows of class, score, box."""
    found = []
    for i in range(0, len(images), batch_size):
        scores, offsets, anchors = net(nd.array(images[i : i + batch_size]))
        prob = nd.transpose(nd.softmax(scores), axes=(0, 2, 1))
        rows = nd.contrib.MultiBoxDetection(prob, offsets, anchors, nms_threshold=0.4, threshold=0.05, nms_topk=100)
        found += [r[r[:, 0] >= 0] for r in rows.asnumpy()]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=int, default=640, help="to learn from")
    parser.add_argument("--size", type=int, default=64, help="of pictures: a multiple of 32")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.004)
    parser.add_argument("--hybridize", action="store_true", help="run the network as one graph")
    parser.add_argument("--png", default="ssd.png", help="where some pictures with what was found go")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)

    data = shapes.pictures(args.pictures, args.size, args.seed)
    images, labels = shapes.pictures(128, args.size, args.seed + 1)
    net = SSD()
    net.initialize(mx.init.Xavier())
    if args.hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": args.lr})
    classify = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(1, args.epochs + 1):
        began = time.time()
        if epoch == args.epochs - args.epochs // 4:
            trainer.set_learning_rate(args.lr / 5)
        loss = train(net, data, trainer, classify, args.batch_size, rng)
        print(f"epoch {epoch}: loss {loss:.3f}, {time.time() - began:.1f} s")
    found = detect(net, images)
    print(f"mAP {shapes.mean_average_precision(found, labels):.3f} on {len(images)} new pictures")
    shapes.save(args.png, images[:6], found)
    print(f"some of them are in {args.png}")


if __name__ == "__main__":
    main()
