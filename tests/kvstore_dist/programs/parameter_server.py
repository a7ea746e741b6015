"""Parallel training from scratch: gradients of several devices and machines through a parameter server."""

import mxnet as mx
from mxnet import autograd, gluon, nd
import numpy as np

scale = 0.5
draw = np.random.RandomState(3)
shapes = [(2, 1, 3, 3), (2,), (2 * 3 * 3, 8), (8,), (8, 3), (3,)]
params = [nd.array(draw.normal(0, scale, shape)) for shape in shapes]
loss = gluon.loss.SoftmaxCrossEntropyLoss()


def lenet(X, params):
    h1 = nd.Convolution(data=X, weight=params[0], bias=params[1], kernel=(3, 3), num_filter=2)
    h1 = nd.Pooling(data=nd.relu(h1), pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h2 = nd.relu(nd.dot(nd.flatten(h1), params[2]) + params[3])
    return nd.dot(h2, params[4]) + params[5]


def get_params(params, ctx):
    new_params = [p.copyto(ctx) for p in params]
    for p in new_params:
        p.attach_grad()
    return new_params


def split_batch(X, y, ctx_list):
    return gluon.utils.split_and_load(X, ctx_list), gluon.utils.split_and_load(y, ctx_list)


def sgd(params, lr, batch_size):
    for param in params:
        param[:] = param - lr * param.grad / batch_size


kv = mx.kv.create("dist_sync_device")
ctx_list = [mx.cpu(0), mx.cpu(1)]
y = draw.randint(0, 3, 96)
X = draw.normal(0, 0.3, (96, 1, 8, 8))
X[np.arange(96), 0, y * 2] += 1
X, y = (nd.array(a[kv.rank :: kv.num_workers]) for a in (X, y))
device_params = [get_params(params, c) for c in ctx_list]
for i, p in enumerate(params):
    kv.init(i, nd.zeros(p.shape))
batch_size, lr = 12, 0.3
for epoch in range(4):
    total = 0
    for start in range(0, X.shape[0], batch_size):
        X_shards, y_shards = split_batch(X[start : start + batch_size], y[start : start + batch_size], ctx_list)
        with autograd.record():
            ls = [loss(lenet(a, w), b).sum() for a, b, w in zip(X_shards, y_shards, device_params)]
        for l in ls:
            l.backward()
        total += sum(l.asscalar() for l in ls)
        for i in range(len(params)):
            grads = [device_params[c][i].grad for c in range(len(ctx_list))]
            kv.push(i, grads, priority=-i)
            kv.pull(i, out=grads, priority=-i)
        for param in device_params:
            sgd(param, lr, batch_size * kv.num_workers)
    print("rank %d: epoch %d, loss %.4f" % (kv.rank, epoch, total / X.shape[0]))
