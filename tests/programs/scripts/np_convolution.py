"""Convolutions: by hand, learnt, and LeNet on patterns."""

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()


def corr2d(X, K):
    h, w = K.shape
    Y = np.zeros((X.shape[0] - h + 1, X.shape[1] - w + 1))
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            Y[i, j] = (X[i : i + h, j : j + w] * K).sum()
    return Y


X = np.arange(9.0).reshape(3, 3)
K = np.array([[0, 1], [2, 3]])
print(corr2d(X, K))


class Conv2D(nn.Block):
    def __init__(self, kernel_size, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.params.get("weight", shape=kernel_size, init=init.Constant(0.1))
        self.bias = self.params.get("bias", shape=(1,), init=init.Zero())

    def forward(self, x):
        return corr2d(x, self.weight.data()) + self.bias.data()


layer = Conv2D((2, 2))
layer.initialize()
print(layer(X))
X = np.ones((6, 8))
X[:, 2:6] = 0
Y = corr2d(X, np.array([[1, -1]]))
conv2d = nn.Conv2D(1, kernel_size=(1, 2), use_bias=False)
conv2d.initialize(init.Constant(0.2))
X, Y = X.reshape(1, 1, 6, 8), Y.reshape(1, 1, 6, 7)
for i in range(10):
    with autograd.record():
        l = (conv2d(X) - Y) ** 2
    l.backward()
    conv2d.weight.data()[:] -= 3e-2 * conv2d.weight.grad()
    if (i + 1) % 2 == 0:
        print("batch %d, loss %.3f" % (i + 1, float(l.sum())))
print(conv2d.weight.data().reshape((1, 2)))


def batch_norm(X, gamma, beta, eps=1e-5):
    mean = X.mean(axis=(0, 2, 3), keepdims=True)
    var = ((X - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
    return gamma * (X - mean) / np.sqrt(var + eps) + beta


rng = onp.random.RandomState(0)
images = rng.uniform(0, 0.3, (60, 1, 12, 12)).astype("float32")
labels = onp.arange(60) % 3
for n, k in enumerate(labels):
    images[n, 0, 2 + 3 * k : 4 + 3 * k, :] += 0.6
images, labels = np.array(images), np.array(labels)
print(batch_norm(images[:4], np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1, 1))).std())
net = nn.HybridSequential()
net.add(
    nn.Conv2D(channels=4, kernel_size=3, padding=1, activation="sigmoid"),
    nn.AvgPool2D(pool_size=2, strides=2),
    nn.Conv2D(channels=6, kernel_size=3, activation="relu"),
    nn.BatchNorm(),
    nn.MaxPool2D(pool_size=2, strides=2),
    nn.Dense(12, activation="tanh"),
    nn.Dense(3),
)


@init.register
class Waves(init.Initializer):
    def _init_weight(self, name, arr):
        arr[:] = np.sin(np.arange(arr.size) * 1.7).reshape(arr.shape) * 0.3


net.initialize(Waves())
for step in net:
    images_ = step(images[:2] if step is net[0] else images_)
    print(step.name.rstrip("0123456789"), images_.shape)
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
for epoch in range(5):
    with autograd.record():
        l = gluon.loss.SoftmaxCrossEntropyLoss()(net(images), labels)
    l.backward()
    trainer.step(60)
    print(epoch, float(l.mean()))
print((net(images).argmax(axis=1) == labels).sum())
