"""Linear regression from scratch."""

from mxnet import autograd, nd
import numpy as np, random

np.random.seed(0)
random.seed(0)
num_inputs, num_examples = 2, 200
features = nd.array(np.random.normal(size=(num_examples, num_inputs)))
labels = 2 * features[:, 0] - 3.4 * features[:, 1] + 4.2
labels += nd.array(np.random.normal(scale=0.01, size=labels.shape))


def data_iter(batch_size, features, labels):
    idx = list(range(len(features)))
    random.shuffle(idx)
    for i in range(0, num_examples, batch_size):
        j = nd.array(idx[i : min(i + batch_size, num_examples)])
        yield features.take(j), labels.take(j)


w = nd.array(np.random.normal(scale=0.01, size=(num_inputs, 1)))
b = nd.zeros(shape=(1,))
w.attach_grad()
b.attach_grad()


def linreg(X, w, b):
    return nd.dot(X, w) + b


def squared_loss(y_hat, y):
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params, lr, batch_size):
    for p in params:
        p[:] = p - lr * p.grad / batch_size


for epoch in range(3):
    for X, y in data_iter(10, features, labels):
        with autograd.record():
            l = squared_loss(linreg(X, w, b), y)
        l.backward()
        sgd([w, b], 0.03, 10)
    train_l = squared_loss(linreg(features, w, b), labels)
    print("epoch %d, loss %f" % (epoch + 1, train_l.mean().asnumpy()))
print(w, b)
