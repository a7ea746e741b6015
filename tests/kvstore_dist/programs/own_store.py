"""A store of somebody else, as Horovod's was: `broadcast` and `pushpull` are all that a Trainer asks for."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.kvstore import KVStoreBase


@KVStoreBase.register
class Ring(KVStoreBase):
    def __init__(self):
        self._below = mx.kv.create("dist_sync")
        self._known = set()

    def _init(self, key, value):
        if key not in self._known:
            self._known.add(key)
            self._below.init(str(key), value)

    def broadcast(self, key, value, out, priority=0):
        out = out if isinstance(out, list) else [out]
        self._init(key, value)
        self._below.pull(str(key), out=out, priority=priority)

    def pushpull(self, key, value, out=None, priority=0):
        value = value if isinstance(value, list) else [value]
        self._init(key, value[0])
        self._below.push(str(key), value, priority=priority)
        self._below.pull(str(key), out=value if out is None else out, priority=priority)

    @staticmethod
    def is_capable(capability):
        return capability.lower() != KVStoreBase.OPTIMIZER

    @property
    def type(self):
        return "ring"

    @property
    def rank(self):
        return self._below.rank

    @property
    def num_workers(self):
        return self._below.num_workers


kv = mx.kv.create("ring")
draw = np.random.RandomState(2)
weight = draw.normal(size=(6, 1))
x = draw.normal(size=(128, 6)).astype("float32")
y = (x.dot(weight) + 0.7).astype("float32")
dataset = gluon.data.ArrayDataset(x[kv.rank :: kv.num_workers], y[kv.rank :: kv.num_workers])

net = gluon.nn.Dense(1, in_units=6)
net.initialize(mx.init.Constant(0.1 * (kv.rank + 1)))  # the first worker's count
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1 * kv.num_workers}, kvstore=kv)
loss_fn = gluon.loss.L2Loss()
for epoch in range(4):
    total = 0
    for data, label in gluon.data.DataLoader(dataset, 16):
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        trainer.step(16 * kv.num_workers)
        total += loss.mean().asscalar()
    print("rank %d: epoch %d, loss %.4f" % (kv.rank, epoch, total))
print("rank %d: weight" % kv.rank, " ".join("%.4f" % w for w in net.weight.data().asnumpy().ravel()))
