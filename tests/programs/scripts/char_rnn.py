"""A recurrent network from scratch whose state goes from one batch to the next."""

from mxnet import nd, autograd
import numpy as np

np.random.seed(2)
V, H, B, T = 7, 5, 3, 4


def P(*s):
    return nd.array(np.random.normal(scale=0.3, size=s))


Wxh, Whh, bh, Whq, bq = P(V, H), P(H, H), nd.zeros(H), P(H, V), nd.zeros(V)
params = [Wxh, Whh, bh, Whq, bq]
for p in params:
    p.attach_grad()


def rnn(inputs, state):
    (H,) = state
    out = []
    for X in inputs:
        H = nd.tanh(nd.dot(X, Wxh) + nd.dot(H, Whh) + bh)
        out.append(nd.dot(H, Whq) + bq)
    return out, (H,)


def clip(params, theta):
    norm = nd.array([0])
    for p in params:
        norm += (p.grad**2).sum()
    norm = norm.sqrt().asscalar()
    if norm > theta:
        for p in params:
            p.grad[:] *= theta / norm


from mxnet.gluon import loss as gloss

L = gloss.SoftmaxCrossEntropyLoss()
state = (nd.zeros((B, H)),)
data = np.random.randint(0, V, (6, T + 1, B))
for i in range(6):
    for s in state:
        s.detach()
    with autograd.record():
        ins = [nd.one_hot(nd.array(data[i, t]), V) for t in range(T)]
        out, state = rnn(ins, state)
        out = nd.concat(*out, dim=0)
        y = nd.array(data[i, 1:].reshape(-1))
        l = L(out, y).mean()
    l.backward()
    clip(params, 1e-1)
    for p in params:
        p[:] = p - 1.0 * p.grad
    print("perplexity %f" % np.exp(l.asscalar()))
