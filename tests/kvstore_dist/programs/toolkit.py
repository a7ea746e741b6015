"""In the manner of a toolkit's training script: several contexts, warm-up, clipping, the metric of all workers."""

import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

parser = argparse.ArgumentParser()
parser.add_argument("--kv-store", default="dist_sync_device")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--warmup", type=int, default=6)
args = parser.parse_args()
kv = mx.kvstore.create(args.kv_store)
ctx = [mx.cpu(0), mx.cpu(1)]


class DistributedSampler(gluon.data.Sampler):
    """Each worker's share of one order that all of them draw alike, anew in each epoch."""

    def __init__(self, length, num_parts, part_index, seed=5):
        self.length, self.parts, self.part, self.seed, self.epoch = length, num_parts, part_index, seed, 0

    def __iter__(self):
        order = np.random.RandomState(self.seed + self.epoch).permutation(self.length)
        self.epoch += 1
        return iter(order[self.part : len(self) * self.parts : self.parts].tolist())

    def __len__(self):
        return self.length // self.parts


draw = np.random.RandomState(4)
label = draw.randint(0, 3, 120)
data = (np.eye(3)[label].repeat(3, 1) + draw.normal(0, 0.5, (120, 9))).astype("float32")
sampler = DistributedSampler(len(data), kv.num_workers, kv.rank)
loader = gluon.data.DataLoader(
    gluon.data.ArrayDataset(data, label.astype("float32")), args.batch_size, sampler=sampler, last_batch="rollover"
)

net = nn.HybridSequential()
net.add(nn.Dense(12, in_units=9), nn.LayerNorm(in_channels=12), nn.Activation("relu"), nn.Dense(3, in_units=12))
net.initialize(ctx=ctx)
for i, p in enumerate(net.collect_params(".*weight").values()):
    p.set_data(mx.nd.array(np.random.RandomState(i).uniform(-0.4, 0.4, p.shape)))
net.hybridize(static_alloc=True)

trainer = gluon.Trainer(
    net.collect_params(),
    "sgd",
    {"learning_rate": args.lr, "momentum": 0.9, "wd": 1e-4},
    kvstore=kv,
    update_on_kvstore=False,
)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
metric, step = mx.metric.Loss(), 0
params = [p for p in net.collect_params().values() if p.grad_req != "null"]
for epoch in range(args.epochs):
    metric.reset()
    for batch in loader:
        step += 1
        trainer.set_learning_rate(args.lr * min(1.0, step / float(args.warmup)))
        xs = gluon.utils.split_and_load(batch[0], ctx, even_split=False)
        ys = gluon.utils.split_and_load(batch[1], ctx, even_split=False)
        with autograd.record():
            losses = [loss_fn(net(x), y) for x, y in zip(xs, ys)]
        autograd.backward(losses)
        trainer.allreduce_grads()
        for c in ctx:
            gluon.utils.clip_global_norm([p.grad(c) for p in params], 6.0)
        trainer.update(args.batch_size * kv.num_workers)
        metric.update(0, losses)
    print("rank %d: epoch %d, %s %.4f, rate %.4f" % ((kv.rank, epoch) + metric.get() + (trainer.learning_rate,)))
kv._barrier()
