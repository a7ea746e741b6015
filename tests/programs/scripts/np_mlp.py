"""A perceptron with dropout, from scratch and by blocks, with the small helpers of a book."""

import collections

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()


class Accumulator:
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + float(b) for a, b in zip(self.data, args)]

    def __getitem__(self, i):
        return self.data[i]


def accuracy(y_hat, y):
    if y_hat.shape[1] > 1:
        return float((y_hat.argmax(axis=1).astype("float32") == y.astype("float32")).sum())
    return float((y_hat.astype("int32") == y.astype("int32")).sum())


def evaluate_accuracy(net, data_iter):
    metric = Accumulator(2)
    for X, y in data_iter:
        metric.add(accuracy(net(X), y), y.size)
    return metric[0] / metric[1]


def sgd(params, lr, batch_size):
    for param in params:
        param[:] = param - lr * param.grad / batch_size


rng = onp.random.RandomState(1)
X = rng.normal(size=(240, 6)).astype("float32")
Y = (onp.abs(X[:, 0]) + X[:, 1] > 0.8).astype("int32") + (X[:, 2] * X[:, 3] > 0).astype("int32")
train = gluon.data.DataLoader(gluon.data.ArrayDataset(X[:200], Y[:200]), 20)
test = gluon.data.DataLoader(gluon.data.ArrayDataset(X[200:], Y[200:]), 20)

W1, b1 = np.array(rng.normal(0, 0.3, (6, 16)).astype("float32")), np.zeros(16)
W2, b2 = np.array(rng.normal(0, 0.3, (16, 3)).astype("float32")), np.zeros(3)
params = [W1, b1, W2, b2]
for p in params:
    p.attach_grad()


def scratch(X):
    return np.dot(np.maximum(np.dot(X.reshape((-1, 6)), W1) + b1, 0), W2) + b2


def softmax(X):
    e = np.exp(X)
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(y_hat, y):
    return -np.log(y_hat[range(len(y_hat)), y])


for epoch in range(4):
    metric = Accumulator(3)
    for x, y in train:
        with autograd.record():
            y_hat = softmax(scratch(x))
            l = cross_entropy(y_hat, y)
        l.backward()
        sgd(params, 0.5, x.shape[0])
        metric.add(l.sum(), accuracy(y_hat, y), y.size)
    print("epoch", epoch, metric[0] / metric[2], metric[1] / metric[2], evaluate_accuracy(scratch, test))

for hybrid in (False, True):
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dropout(0.0), nn.Dense(3))
    net.initialize(init.Constant(0.1))
    net(np.zeros((1, 6)))
    net[0].weight.set_data(np.array(onp.linspace(-0.4, 0.5, 96).reshape(16, 6), dtype="float32"))
    if hybrid:
        net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
    for epoch in range(3):
        total = 0.0
        for x, y in train:
            with autograd.record():
                l = loss(net(x), y)
            l.backward()
            trainer.step(x.shape[0])
            total += float(l.sum())
        print(hybrid, epoch, total / 200, evaluate_accuracy(net, test))
print(sorted(collections.Counter(net(np.array(X[200:])).argmax(axis=1).asnumpy().astype(int).tolist()).items()))
net.save_parameters("mlp.params")
clone = nn.HybridSequential()
clone.add(nn.Dense(16, activation="relu"), nn.Dropout(0.0), nn.Dense(3))
clone.load_parameters("mlp.params")
print((clone(np.array(X[:5])) == net(np.array(X[:5]))).all())
