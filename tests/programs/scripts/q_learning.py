"""Q-learning with a target network, and a policy gradient."""

import mxnet as mx, numpy as np, os, tempfile
from mxnet import nd, gluon, autograd

np.random.seed(9)


def mk(p):
    n = gluon.nn.HybridSequential(prefix=p)
    with n.name_scope():
        n.add(gluon.nn.Dense(8, activation="relu", in_units=4), gluon.nn.Dense(2, in_units=8))
    n.initialize(mx.init.Xavier())
    return n


q, t = mk("q_"), mk("t_")
for i, p in enumerate(q.collect_params().values()):
    p.set_data(nd.array(np.sin(np.arange(np.prod(p.shape)) + i).reshape(p.shape) * 0.3))


def copy():
    for a, b in zip(q.collect_params().values(), t.collect_params().values()):
        b.set_data(a.data())


copy()
tr = gluon.Trainer(q.collect_params(), "rmsprop", {"learning_rate": 0.01})
mem = [(np.random.rand(4), np.random.randint(2), np.random.rand(), np.random.rand(4)) for _ in range(40)]
for k in range(6):
    b = [mem[i] for i in np.random.choice(40, 8)]
    s, a, r, s2 = [nd.array(np.array(x)) for x in zip(*b)]
    y = r + 0.9 * t(s2).max(axis=1)
    with autograd.record():
        l = gluon.loss.HuberLoss()(nd.pick(q(s), a), y)
    l.backward()
    tr.step(8)
    if k % 3 == 2:
        copy()
    print("%.5f" % l.mean().asscalar(), int(q(s)[0].argmax(axis=0).asscalar()))
f = os.path.join(tempfile.mkdtemp(), "s")
tr.save_states(f)
tr.load_states(f)
tr.set_learning_rate(0.001)
print(tr.learning_rate, tr.optimizer.__class__.__name__)
with autograd.record():
    p = nd.softmax(q(s))
    lp = nd.log(nd.pick(p, a))
    l = -(lp * r).sum()
    e = -(p * nd.log(p)).sum()
autograd.backward([l, e])
print(q[0].weight.grad().asnumpy()[0].round(4))
g = nd.array([1.0, 2])
print(
    gluon.utils.clip_global_norm([g, nd.ones(2) * 3], 1.0),
    g,
    [x.shape for x in gluon.utils.split_and_load(nd.ones((4, 2)), [mx.cpu(0), mx.cpu(1)])],
)
