"""Matrix factorisation with sparse gradients, and losses."""

import mxnet as mx, numpy as np
from mxnet import gluon, nd, autograd

np.random.seed(5)
u = np.random.randint(0, 20, 200)
i = np.random.randint(0, 30, 200)
r = ((u * 7 + i * 3) % 5).astype("f")


class MF(gluon.Block):
    def __init__(s, k, **kw):
        super().__init__(**kw)
        with s.name_scope():
            s.u = gluon.nn.Embedding(20, k, sparse_grad=True)
            s.i = gluon.nn.Embedding(30, k)
            s.d = gluon.nn.Dense(1)

    def forward(s, a, b):
        return s.d(s.u(a) * s.i(b))


net = MF(4)
net.initialize(mx.init.Normal(0.1))
for k, p in net.collect_params().items():
    if p.shape and 0 not in p.shape:
        p.set_data(nd.array(np.sin(np.arange(np.prod(p.shape))).reshape(p.shape)))
dl = gluon.data.DataLoader(gluon.data.ArrayDataset(u.astype("f"), i.astype("f"), r), 50)
tr = None
net(nd.array(u[:2]), nd.array(i[:2]))
net.d.weight.set_data(nd.ones((1, 4)))
tr = gluon.Trainer(net.collect_params(), "adagrad", {"learning_rate": 0.1})
L = gluon.loss.L2Loss()
for e in range(3):
    t = 0
    for a, b, y in dl:
        with autograd.record():
            l = L(net(a, b).squeeze(), y)
        l.backward()
        tr.step(len(y))
        t += l.mean().asscalar()
    print("%.4f" % t)
print(net.u.weight.grad().stype, net.i.weight.grad().stype)
print(
    gluon.loss.CosineEmbeddingLoss()(nd.array([[1, 2], [3, 4]]), nd.array([[2, 1], [1, 0]]), nd.array([1, -1])),
    gluon.loss.TripletLoss()(nd.ones((2, 3)), nd.ones((2, 3)) * 2, nd.zeros((2, 3))),
    gluon.loss.HuberLoss()(nd.array([1, 5]), nd.array([0, 0])),
    gluon.loss.KLDivLoss()(nd.array([[-1, -2]]), nd.array([[0.4, 0.6]])),
    gluon.loss.CTCLoss()(nd.array(np.linspace(0, 1, 2 * 5 * 4).reshape(2, 5, 4)), nd.array([[1, 2], [2, -1]])),
)
