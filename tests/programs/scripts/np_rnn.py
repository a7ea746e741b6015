"""A recurrent network over characters, from scratch and by a layer."""

import math

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn, rnn

npx.set_np()
text = "the rain in spain stays mainly in the plain and the train in maine again "
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
corpus = np.array([index[c] for c in text * 3])
V, H = len(chars), 12
rng = onp.random.RandomState(2)


def normal(*shape):
    return np.array(rng.normal(scale=0.1, size=shape).astype("float32"))


W_xh, W_hh, b_h, W_hq, b_q = normal(V, H), normal(H, H), np.zeros(H), normal(H, V), np.zeros(V)
params = [W_xh, W_hh, b_h, W_hq, b_q]
for p in params:
    p.attach_grad()


def forward(inputs, H_state):
    outputs = []
    for X in npx.one_hot(inputs.T, V):
        H_state = np.tanh(np.dot(X, W_xh) + np.dot(H_state, W_hh) + b_h)
        outputs.append(np.dot(H_state, W_hq) + b_q)
    return np.concatenate(outputs, axis=0), H_state


def grad_clipping(params, theta):
    norm = math.sqrt(sum((p.grad**2).sum().item() for p in params))
    if norm > theta:
        for p in params:
            p.grad[:] *= theta / norm
    return norm


def batches(batch, steps):
    n = (len(corpus) - 1) // (batch * steps) * steps
    X, Y = corpus[: batch * n].reshape(batch, n), corpus[1 : batch * n + 1].reshape(batch, n)
    for i in range(0, n, steps):
        yield X[:, i : i + steps], Y[:, i : i + steps]


loss = gluon.loss.SoftmaxCrossEntropyLoss()
for epoch in range(4):
    state, total, count = np.zeros((4, H)), 0.0, 0
    for X, Y in batches(4, 8):
        state = state.detach()
        with autograd.record():
            y_hat, state = forward(X, state)
            l = loss(y_hat, Y.T.reshape(-1)).mean()
        l.backward()
        norm = grad_clipping(params, 1)
        for p in params:
            p[:] = p - 1.0 * p.grad
        total, count = total + float(l) * Y.size, count + Y.size
    print("perplexity %.3f, norm %.3f" % (math.exp(total / count), norm))
layer = rnn.RNN(H)
layer.initialize(init.Constant(0.05))
state = layer.begin_state(batch_size=4)
Y, new = layer(npx.one_hot(corpus[:20].reshape(4, 5).T, V), state)
print(Y.shape, len(new), new[0].shape, Y[-1].sum(), type(Y).__name__)
for cell in (rnn.GRU(H), rnn.LSTM(H)):
    cell.initialize(init.Constant(0.1))
    Y, new = cell(npx.one_hot(corpus[:20].reshape(4, 5).T, V), cell.begin_state(batch_size=4))
    print(Y.mean(), [s.shape for s in new])
