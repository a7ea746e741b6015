"""Linear regression, from scratch and in a few lines of Gluon."""

import random

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import loss as gloss
from mxnet.gluon import nn

npx.set_np()
onp.random.seed(0)
random.seed(0)
true_w, true_b = np.array([2, -3.4]), 4.2
features = np.array(onp.random.normal(size=(200, 2)), dtype="float32")
labels = np.dot(features, true_w) + true_b
labels = labels + np.array(onp.random.normal(scale=0.01, size=labels.shape), dtype="float32")
print(features.shape, labels.shape, features[0], labels[0])


def data_iter(batch_size):
    indices = list(range(len(features)))
    random.shuffle(indices)
    for i in range(0, len(features), batch_size):
        batch = np.array(indices[i : i + batch_size])
        yield features[batch], labels[batch]


w, b = np.array(onp.random.normal(0, 0.01, (2, 1)), dtype="float32"), np.zeros(1)
for p in (w, b):
    p.attach_grad()
for epoch in range(3):
    for X, y in data_iter(10):
        with autograd.record():
            y_hat = np.dot(X, w) + b
            l = (y_hat - y.reshape(y_hat.shape)) ** 2 / 2
        l.backward()
        for p in (w, b):
            p[:] = p - 0.03 * p.grad / 10
    l = (np.dot(features, w) + b - labels.reshape(-1, 1)) ** 2 / 2
    print("epoch %d, loss %f" % (epoch + 1, float(l.mean())))
print(true_w - w.reshape(true_w.shape), true_b - b)

net = nn.Sequential()
net.add(nn.Dense(1))
net.initialize(init.Zero())
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.03})
for epoch in range(3):
    for X, y in gluon.data.DataLoader(gluon.data.ArrayDataset(features, labels), batch_size=10):
        with autograd.record():
            l = gloss.L2Loss()(net(X), y)
        l.backward()
        trainer.step(10)
    l = gloss.L2Loss()(net(features), labels)
    print("epoch %d, loss: %f" % (epoch + 1, l.mean()))
print(type(net[0].weight.data()).__name__, net[0].weight.data(), net[0].bias.data())
