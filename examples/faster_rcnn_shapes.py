"""Faster R-CNN for shapes on pictures that it draws itself, in Gluon; it draws what it found, too.

A region proposal network says at each place of a feature map which anchors hold an object; `MultiProposal` makes boxes
of it, the best ones without those that overlap with them. `ROIAlign` cuts them out of the feature map, and the second
half of the network says what each holds and how its box should be corrected. Both halves learn at the same time.

python faster_rcnn_shapes.py
python faster_rcnn_shapes.py --epochs 20 --size 96 --png found.png
"""

import argparse
import time

import numpy as np
import shapes

import mxcore as mx
from mxcore import autograd, gluon, nd
from mxcore.gluon import nn

STRIDE, SCALES, RATIOS = 8, (1.5, 2.2, 3.2), (0.7, 1.4)
ANCHORS = len(SCALES) * len(RATIOS)
CLASSES = len(shapes.NAMES) + 1
STDS = nd.array([0.1, 0.1, 0.2, 0.2])
MEANS = nd.zeros(4)


class Detector(gluon.HybridBlock):
    """A feature map, proposals from it (`propose`), and what they hold (`look`)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.base, self.region, self.head = (nn.HybridSequential() for _ in range(3))
            for channels in (16, 32, 64):
                for _ in range(2):
                    self.base.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm())
                    self.base.add(nn.Activation("relu"))
                self.base.add(nn.MaxPool2D())
            self.region.add(nn.Conv2D(64, 3, padding=1, activation="relu"))
            self.object, self.offset = nn.Conv2D(2 * ANCHORS, 1), nn.Conv2D(4 * ANCHORS, 1)
            self.head.add(nn.Dense(128, activation="relu"), nn.Dense(128, activation="relu"))
            self.classes, self.correction = nn.Dense(CLASSES), nn.Dense(4)

    def hybrid_forward(self, F, x):
        features = self.base(x)
        seen = self.region(features)
        return features, self.object(seen), self.offset(seen)

    def propose(self, scores, offsets, size, number):
        """Regions (N * number, 5): number of the picture, corners in pixels."""
        two = scores.reshape((scores.shape[0], 2, -1))  # background and objects, by anchor
        prob = nd.softmax(two, axis=1).reshape(scores.shape)
        info = nd.array([[size, size, 1.0]] * len(scores))
        return nd.contrib.MultiProposal(
            prob,
            offsets,
            info,
            scales=SCALES,
            ratios=RATIOS,
            feature_stride=STRIDE,
            rpn_post_nms_top_n=number,
            rpn_pre_nms_top_n=200,
            rpn_min_size=4,
            threshold=0.6,
        )

    def look(self, features, regions):
        """Scores of classes and offsets of boxes for each region."""
        x = nd.contrib.ROIAlign(features, regions, pooled_size=(5, 5), spatial_scale=1 / STRIDE, sample_ratio=2)
        x = self.head(x)
        return self.classes(x), self.correction(x)


def anchors_of(places):
    """The anchors of `MultiProposal`, (places * places * ANCHORS, 4), in pixels."""
    rows = []
    for ratio in RATIOS:
        width = np.floor(np.sqrt(np.floor(STRIDE * STRIDE / ratio)) + 0.5)
        height = np.floor(width * ratio + 0.5)
        for scale in SCALES:
            w, h = (0.5 * (v * scale - 1) for v in (width, height))
            rows.append([-w, -h, w, h])
    at = np.arange(places) * STRIDE + (STRIDE - 1) / 2
    y, x = np.meshgrid(at, at, indexing="ij")
    return (np.stack([x, y, x, y], -1)[:, :, None] + np.array(rows)).reshape(-1, 4)


def region_targets(anchors, labels, rng, number=48):
    """Which anchors hold objects (1), which do not (0), which are not looked at (-1); and their boxes' offsets."""
    kinds, offsets = np.full((len(labels), len(anchors)), -1.0), np.zeros((len(labels), len(anchors), 4))
    for i, label in enumerate(labels):
        boxes = label[label[:, 0] >= 0, 1:]
        overlap = nd.contrib.box_iou(nd.array(anchors), nd.array(boxes)).asnumpy()
        nearest, most = overlap.argmax(1), overlap.max(1)
        kinds[i, rng.permutation(np.flatnonzero(most < 0.3))[:number]] = 0
        kinds[i, most > 0.55] = 1
        kinds[i, overlap.argmax(0)] = 1
        box = boxes[nearest]
        size, own = box[:, 2:] - box[:, :2] + 1, anchors[:, 2:] - anchors[:, :2] + 1
        moved = (box[:, :2] + box[:, 2:] - anchors[:, :2] - anchors[:, 2:]) / 2 / own
        offsets[i] = np.concatenate([moved, np.log(size / own)], 1)
    return nd.array(kinds), nd.array(offsets)


def box_targets(regions, labels, number):
    """What regions hold, and offsets to its box, which count where it holds something; each (N * number, …)."""
    n = len(labels)
    boxes, refs = regions[:, 1:].reshape((n, number, 4)), nd.array(labels[:, :, 1:])
    overlap = nd.stack(*[nd.contrib.box_iou(a, b) for a, b in zip(boxes, refs)])
    overlap = overlap * nd.array(labels[:, None, :, 0] >= 0)
    matches, samples = overlap.argmax(axis=2), overlap.max(axis=2) > 0.5
    offsets, mask = nd.contrib.box_encode(samples, matches, boxes, refs, MEANS, STDS)
    classes = (nd.pick(nd.array(labels[:, None, :, 0]).broadcast_axes(1, number), matches) + 1) * samples
    return classes.reshape((-1,)), offsets.reshape((-1, 4)), mask.reshape((-1, 4))


def train(net, data, trainer, args, rng):
    """One epoch; the mean losses of proposals and of regions."""
    images, labels = data[0], data[1].copy()
    labels[:, :, 1:] *= args.size  # in pixels
    classify = gluon.loss.SoftmaxCrossEntropyLoss(weight=1)
    places = args.size // STRIDE
    anchors, total, order = anchors_of(places), np.zeros(2), rng.permutation(len(images))
    steps = len(order) // args.batch_size
    for some in order[: steps * args.batch_size].reshape(steps, -1):
        label = labels[some]
        kinds, offsets = region_targets(anchors, label, rng)
        with autograd.record():
            features, scores, found = net(nd.array(images[some]))
            with autograd.pause():
                regions = net.propose(scores, found, args.size, args.regions)
                # The boxes themselves are regions as well.
                own = np.concatenate(
                    [np.repeat(np.arange(len(some)), shapes.MOST)[:, None], label[..., 1:].reshape(-1, 4)], 1
                )
                regions = nd.concat(
                    regions.reshape((len(some), -1, 5)), nd.array(own).reshape((len(some), -1, 5)), dim=1
                )
                number = regions.shape[1]
                regions = regions.reshape((-1, 5))
                classes, corrections, mask = box_targets(regions, label, number)
            by_anchor = scores.reshape((0, 2, ANCHORS, places, places)).transpose((0, 3, 4, 2, 1)).reshape((0, -1, 2))
            moved = found.reshape((0, ANCHORS, 4, places, places)).transpose((0, 3, 4, 1, 2)).reshape((0, -1, 4))
            holds = (kinds == 1).expand_dims(2)
            first = (classify(by_anchor, kinds, (kinds >= 0).expand_dims(2)) * len(anchors)).sum()
            first = (first + 3 * nd.smooth_l1((moved - offsets) * holds, scalar=3.0).sum()) / (kinds >= 0).sum()
            kind, correction = net.look(features, regions)
            second = classify(kind, classes).mean()
            second = second + nd.smooth_l1((correction - corrections) * mask, scalar=1.0).sum() / nd.maximum(
                mask.sum() / 4, 1
            )
            loss = first + second
        loss.backward()
        trainer.step(1)
        total += first.asscalar(), second.asscalar()
    return total / steps


def detect(net, images, args):
    """For each picture rows of class, score, box in parts of the picture."""
    found = []
    for image in np.split(images, range(32, len(images), 32)):
        n = len(image)
        features, scores, offsets = net(nd.array(image))
        regions = net.propose(scores, offsets, args.size, args.regions)
        kind, correction = net.look(features, regions)
        prob, boxes = nd.softmax(kind), regions[:, 1:].reshape((n, -1, 4))
        # Each region is an anchor of one box.
        stds = dict(zip(("std0", "std1", "std2", "std3"), STDS.asnumpy().tolist()))
        moved = nd.concat(
            *[
                nd.contrib.box_decode(c.expand_dims(0), b.expand_dims(0), format="corner", **stds)
                for c, b in zip(correction.reshape((n, -1, 4)), boxes)
            ],
            dim=0,
        )
        prob = prob[:, 1:]
        rows = nd.concat(
            prob.argmax(axis=1).reshape((n, -1, 1)), prob.max(axis=1).reshape((n, -1, 1)), moved / args.size, dim=2
        )
        rows = nd.contrib.box_nms(rows, id_index=0, overlap_thresh=0.4, valid_thresh=0.05)
        found += [r[r[:, 0] >= 0] for r in rows.asnumpy()]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pictures", type=int, default=640, help="to learn from")
    parser.add_argument("--size", type=int, default=64, help="of pictures: a multiple of 8")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--regions", type=int, default=24, help="proposals for each picture")
    parser.add_argument("--lr", type=float, default=0.002)
    parser.add_argument("--png", default="faster_rcnn.png", help="where some pictures with what was found go")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    rng = np.random.default_rng(args.seed)

    data = shapes.pictures(args.pictures, args.size, args.seed)
    images, labels = shapes.pictures(128, args.size, args.seed + 1)
    net = Detector()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": args.lr})
    for epoch in range(1, args.epochs + 1):
        began = time.time()
        if epoch == args.epochs - args.epochs // 4:
            trainer.set_learning_rate(args.lr / 5)
        first, second = train(net, data, trainer, args, rng)
        print(f"epoch {epoch}: proposals {first:.3f}, regions {second:.3f}, {time.time() - began:.1f} s")
    found = detect(net, images, args)
    print(f"mAP {shapes.mean_average_precision(found, labels):.3f} on {len(images)} new pictures")
    shapes.save(args.png, images[:6], found)
    print(f"some of them are in {args.png}")


if __name__ == "__main__":
    main()
