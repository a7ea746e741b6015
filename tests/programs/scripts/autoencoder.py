"""A variational autoencoder, exported and imported again."""

import mxnet as mx, numpy as np, tempfile, os
from mxnet import nd, autograd, gluon
from mxnet.gluon import nn


class VAE(gluon.HybridBlock):
    def __init__(s, **k):
        super(VAE, s).__init__(**k)
        s.lat = 2
        with s.name_scope():
            s.enc = nn.HybridSequential(prefix="e")
            s.enc.add(nn.Dense(8, activation="relu"), nn.Dense(4))
            s.dec = nn.HybridSequential(prefix="d")
            s.dec.add(nn.Dense(8, activation="softrelu"), nn.Dense(6, activation="sigmoid"))

    def hybrid_forward(s, F, x):
        h = s.enc(x)
        m, lv = F.split(h, axis=1, num_outputs=2)
        z = m + F.exp(0.5 * lv) * 0.1
        y = s.dec(z)
        kl = -0.5 * F.sum(1 + lv - m * m - F.exp(lv), axis=1)
        ll = F.sum(x * F.log(y + 1e-10) + (1 - x) * F.log(1 - y + 1e-10), axis=1)
        return kl - ll


np.random.seed(4)
X = nd.array(np.random.rand(16, 6))
net = VAE()
net.initialize(mx.init.Constant(0.05))
net.hybridize()
tr = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.02})
for i in range(4):
    with autograd.record():
        l = net(X)
    l.backward()
    tr.step(16)
    print("%.4f" % nd.mean(l).asscalar())
p = os.path.join(tempfile.mkdtemp(), "vae")
net.export(p, epoch=3)
print(sorted(os.listdir(os.path.dirname(p))))
b = gluon.SymbolBlock.imports(p + "-symbol.json", ["data"], p + "-0003.params")
print(abs(b(X) - net(X)).max().asscalar() < 1e-5)
net.save_parameters(p + ".params")
n2 = VAE(prefix=net.prefix)
n2.load_parameters(p + ".params")
print(abs(n2(X) - net(X)).max().asscalar() < 1e-5)
s, a, x = mx.model.load_checkpoint(p, 3)
print(len(a), s.list_outputs())
