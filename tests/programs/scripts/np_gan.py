"""A generative adversarial network on points of a plane, with two trainers and penalties of gradients."""

import numpy as onp
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()

rng = onp.random.RandomState(7)
A = np.array([[1, 2], [-0.1, 0.5]])
b = np.array([1, 2])
real = np.dot(np.array(rng.normal(0, 1, (200, 2)).astype("float32")), A) + b
print(f"The covariance matrix is\n{np.dot(A.T, A)}")

net_G = nn.Sequential()
net_G.add(nn.Dense(2))
net_D = nn.Sequential()
net_D.add(nn.Dense(5, activation="tanh"), nn.Dense(3, activation="tanh"), nn.Dense(1))
for net in (net_D, net_G):
    net.initialize()
    net(np.zeros((1, 2)))
    for p in net.collect_params().values():
        p.set_data(np.array(rng.normal(0, 0.3, p.shape).astype("float32")))

loss = gluon.loss.SigmoidBCELoss()
trainer_D = gluon.Trainer(net_D.collect_params(), "adam", {"learning_rate": 0.05})
trainer_G = gluon.Trainer(net_G.collect_params(), "adam", {"learning_rate": 0.01})


def update_D(X, Z):
    n = X.shape[0]
    ones, zeros = np.ones((n,), ctx=X.ctx), np.zeros((n,), ctx=X.ctx)
    with autograd.record():
        real_Y = net_D(X)
        fake_Y = net_D(net_G(Z).detach())
        loss_D = (loss(real_Y, ones) + loss(fake_Y, zeros)) / 2
    loss_D.backward()
    trainer_D.step(n)
    return float(loss_D.sum())


def update_G(Z):
    n = Z.shape[0]
    with autograd.record():
        fake_Y = net_D(net_G(Z))
        loss_G = loss(fake_Y, np.ones((n,), ctx=Z.ctx))
    loss_G.backward()
    trainer_G.step(n)
    return float(loss_G.sum())


for epoch in range(6):
    d = g = 0.0
    for X in gluon.data.DataLoader(gluon.data.ArrayDataset(real), 20):
        Z = np.array(rng.normal(0, 1, (X.shape[0], 2)).astype("float32"))
        d += update_D(X, Z)
        g += update_G(Z)
    print(f"epoch {epoch + 1}: loss_D {d / 200:.3f}, loss_G {g / 200:.3f}")
Z = np.array(rng.normal(0, 1, (100, 2)).astype("float32"))
fake = net_G(Z)
print("mean", fake.mean(axis=0), "std", fake.std(axis=0))

x = real[:5].copy()
x.attach_grad()
with autograd.record():
    y = net_D(x).sum()
y.backward()
print("slopes", np.sqrt((x.grad**2).sum(axis=1)))
