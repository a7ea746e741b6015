"""Own layers, own initializers and own losses over mx.np: constants in a HybridBlock, control flow, quantiles."""

import numpy as onp
from mxnet import autograd, gluon, init, np, npx
from mxnet.gluon import nn

npx.set_np()


x = np.array([-2.0, -0.5, 0.25, 3.0])
x.attach_grad()


class MyInit(init.Initializer):
    def _init_weight(self, name, data):
        data[:] = np.arange(data.size).reshape(data.shape) % 5 - 2
        data *= np.abs(data) >= 1


class FixedHidden(nn.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        values = onp.linspace(-1, 1, 400).reshape(20, 20).astype("float32")
        self.rand_weight = self.params.get_constant("rand_weight", np.array(values))
        self.dense = nn.Dense(20, activation="relu")

    def hybrid_forward(self, F, x, rand_weight):
        x = self.dense(x)
        x = F.npx.relu(F.np.dot(x, rand_weight) + 1)
        x = self.dense(x)
        return (x * 0.01).sum(axis=1)


net = FixedHidden()
net.initialize(MyInit())
X = np.array(onp.linspace(0, 1, 40).reshape(2, 20).astype("float32"))
eager = net(X)
net.hybridize()
print("fixed", eager, "hybridised alike", bool((onp.abs((net(X) - eager).asnumpy()) < 1e-4).all()))


class Centered(nn.Block):
    def forward(self, X):
        return X - X.mean()


layers = nn.Sequential()
layers.add(nn.Dense(6), Centered())
layers.initialize(init.Constant(0.1))
print("centred", float(layers(np.arange(8).reshape(2, 4)).mean()) < 1e-6)


def steep(a):
    b = a * 2
    while np.linalg.norm(b) < 1000:
        b = b * 2
    return b if b.sum() > 0 else 100 * b


for start in (0.7, -1.3):
    a = np.array(start)
    a.attach_grad()
    with autograd.record():
        d = steep(a)
    d.backward()
    print("steep", start, float(a.grad), bool(a.grad == d / a))


def pinball(prediction, target, q):
    error = target - prediction
    return np.maximum(q * error, (q - 1) * error)


rng = onp.random.RandomState(5)
sample = np.array(rng.gamma(2, 1, (400,)).astype("float32"))
for q in (0.1, 0.5, 0.9):
    w = np.array([1.0])
    w.attach_grad()
    for _ in range(300):
        with autograd.record():
            L = pinball(w, sample, q).mean()
        L.backward()
        w -= 0.1 * w.grad
    print(f"quantile {q}: {float(w):.2f}, share below {float((sample < w).astype('float32').mean()):.3f}")

with autograd.record(train_mode=False):
    h = np.tanh(x) ** 2
print(autograd.grad(h, [x], head_grads=np.ones(4))[0].asnumpy())
mask = x > 0
x[mask] = 0
print(x, mask, x[~mask].shape)
