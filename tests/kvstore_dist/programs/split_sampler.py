"""A convolutional network on several machines: each reads its part by a sampler of its own."""

import random

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


class SplitSampler(gluon.data.sampler.Sampler):
    """Split the data into parts, and draw from one."""

    def __init__(self, length, num_parts=1, part_index=0):
        self.part_len = length // num_parts
        self.start = self.part_len * part_index
        self.end = self.start + self.part_len

    def __iter__(self):
        indices = list(range(self.start, self.end))
        random.shuffle(indices)
        return iter(indices)

    def __len__(self):
        return self.part_len


store = mx.kv.create("dist")
batch_size, epochs = 16, 3
random.seed(store.rank)

draw = np.random.RandomState(0)
labels = draw.randint(0, 4, 256)
images = draw.rand(256, 8, 8, 3).astype("float32") * 0.5
for image, label in zip(images, labels):
    image[label * 2 : label * 2 + 2] += 0.5


def transform(data, label):
    return nd.transpose(nd.array(data), (2, 0, 1)), np.float32(label)


dataset = gluon.data.ArrayDataset(images, labels).transform(transform)
train_data = gluon.data.DataLoader(
    dataset, batch_size, sampler=SplitSampler(len(dataset), store.num_workers, store.rank)
)

net = nn.HybridSequential()
net.add(nn.Conv2D(4, 3, in_channels=3, activation="relu"), nn.MaxPool2D(2), nn.Flatten(), nn.Dense(4, in_units=36))
net.initialize(ctx=mx.cpu())
for i, p in enumerate(net.collect_params().values()):
    p.set_data(nd.array(np.random.RandomState(i).uniform(-0.3, 0.3, p.shape)))
net.hybridize()

trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, kvstore=store, update_on_kvstore=False)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
for epoch in range(epochs):
    total = 0
    for data, label in train_data:
        parts = gluon.utils.split_and_load(data, [mx.cpu()]), gluon.utils.split_and_load(label, [mx.cpu()])
        with autograd.record():
            losses = [loss_fn(net(x), y) for x, y in zip(*parts)]
        for loss in losses:
            loss.backward()
            total += loss.sum().asscalar()
        trainer.step(batch_size * store.num_workers)
    print("rank %d: epoch %d, loss %.4f" % (store.rank, epoch, total / len(train_data._batch_sampler._sampler)))
