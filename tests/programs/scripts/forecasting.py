"""gluon-ts-like: distributions, scalers, a DeepAR-like network with shared cells and sampling paths as arrays."""

import mxnet as mx, numpy as np, math
from mxnet import nd, autograd, gluon
from mxnet.gluon import nn

np.random.seed(4)


def softplus(F, x):
    return F.Activation(x, act_type="softrelu")


class MeanScaler(gluon.HybridBlock):
    def __init__(self, minimum_scale=1e-10, **kw):
        super().__init__(**kw)
        self.m = minimum_scale

    def hybrid_forward(self, F, data, observed):
        num = F.sum(observed, axis=1)
        tot = F.sum(F.abs(data) * observed, axis=1)
        tot_b = F.sum(tot, axis=0)
        nb = F.maximum(F.sum(num, axis=0), F.ones_like(F.sum(num, axis=0)))
        default = F.broadcast_div(tot_b, nb)
        s = tot / F.maximum(num, F.ones_like(num))
        scale = F.where(s > F.zeros_like(s), s, F.broadcast_mul(F.ones_like(num), default))
        scale = F.maximum(scale, self.m * F.ones_like(scale))
        return F.broadcast_div(data, scale.expand_dims(axis=1)), scale.expand_dims(axis=1)


class StudentT:
    def __init__(self, mu, sigma, nu, F=nd):
        self.mu, self.sigma, self.nu, self.F = mu, sigma, nu, F

    def log_prob(self, x):
        F, mu, sigma, nu = self.F, self.mu, self.sigma, self.nu
        nup = (nu + 1.0) / 2.0
        Z = F.gammaln(nup) - F.gammaln(nu / 2.0) - 0.5 * F.log(math.pi * nu) - F.log(sigma)
        return Z - nup * F.log1p(F.square((x - mu) / sigma) / nu)


class NegBin:
    def __init__(self, mu, alpha, F=nd):
        self.mu, self.alpha, self.F = mu, alpha, F

    def log_prob(self, x):
        F = self.F
        ai = 1.0 / self.alpha
        am = self.alpha * self.mu
        return x * F.log(am / (1.0 + am)) - ai * F.log1p(am) + F.gammaln(x + ai) - F.gammaln(x + 1.0) - F.gammaln(ai)


class ArgProj(gluon.HybridBlock):
    def __init__(self, args_dim, prefix=None):
        super().__init__(prefix=prefix)
        self.args_dim = args_dim
        self.proj = [nn.Dense(d, flatten=False, prefix="%s_distr_%s_" % (prefix, n)) for n, d in args_dim.items()]
        for d in self.proj:
            self.register_child(d)

    def hybrid_forward(self, F, x, **kwargs):
        return tuple(p(x) for p in self.proj)


class DeepAR(gluon.HybridBlock):
    def __init__(self, nc, nl, **kw):
        super().__init__(**kw)
        with self.name_scope():
            self.proj = ArgProj({"mu": 1, "sigma": 1, "nu": 1}, "st")
            self.rnn = gluon.rnn.HybridSequentialRNNCell()
            for k in range(nl):
                cell = gluon.rnn.LSTMCell(hidden_size=nc)
                cell = gluon.rnn.ResidualCell(cell) if k > 0 else cell
                self.rnn.add(cell)
            self.scaler = MeanScaler()
            self.embedder = nn.HybridSequential()
            self.embedder.add(nn.Embedding(3, 2))

    def hybrid_forward(self, F, cat, past, obs):
        emb = self.embedder(cat)
        scaled, scale = self.scaler(past, obs)
        lags = [F.slice_axis(scaled, axis=1, begin=l, end=l + 6) for l in (0, 1, 3)]
        inp = F.stack(*lags, axis=2)
        rep = F.broadcast_axis(F.expand_dims(emb, 1), axis=1, size=6)
        inp = F.concat(inp, rep, F.broadcast_axis(F.log(scale).expand_dims(axis=1), axis=1, size=6), dim=-1)
        outs, state = self.rnn.unroll(inputs=inp, length=6, layout="NTC", merge_outputs=True)
        mu, sigma, nu = self.proj(outs)
        mu, sigma, nu = mu.squeeze(axis=-1), softplus(F, sigma).squeeze(axis=-1), 2.0 + softplus(F, nu).squeeze(axis=-1)
        target = F.slice_axis(scaled, axis=1, begin=4, end=10)
        d = StudentT(mu, sigma, nu, F)
        loss = -d.log_prob(target) + F.broadcast_mul(F.log(scale), F.ones_like(target))
        w = F.slice_axis(obs, axis=1, begin=4, end=10)
        ws = F.sum(F.where(w > 0, loss * w, F.zeros_like(loss)), axis=1) / F.maximum(
            F.sum(w, axis=1), F.ones_like(F.sum(w, axis=1))
        )
        return ws, mu, F.BlockGrad(sigma)


net = DeepAR(4, 2, prefix="deepar_")
net.initialize(mx.init.Xavier())
past = nd.array(np.random.gamma(2, 5, (5, 10)))
obs = nd.array(np.random.rand(5, 10) > 0.2)
cat = nd.array([0, 1, 2, 0, 1])
net(cat, past, obs)
for i, (k, p) in enumerate(net.collect_params().items()):
    print(k, p.shape)
    p.set_data(nd.array(np.sin(np.arange(np.prod(p.shape)) * (i + 1)).reshape(p.shape) * 0.3))
net.hybridize(static_alloc=True)
tr = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-2, "wd": 1e-8, "clip_gradient": 10.0})
for e in range(4):
    with autograd.record():
        L, mu, sg = net(cat, past, obs)
        l = L.mean()
    l.backward()
    tr.step(5)
    print("%.4f" % l.asscalar(), mu.shape, "%.4f" % sg.mean().asscalar())
print(net.proj.collect_params(".*mu_bias|.*sigma_bias"))
nb = NegBin(nd.array([1, 5, 9]), nd.array([0.5, 0.2, 1]))
x = nd.array([0, 4, 20])
x.attach_grad()
with autograd.record():
    y = nb.log_prob(x)
y.backward()
print(y, x.grad)
q = nd.array(np.random.rand(3, 50)).sort(axis=1)
print(nd.take(q, nd.array([5, 25, 45]), axis=1), q.slice_axis(axis=1, begin=10, end=12).repeat(repeats=2, axis=0).shape)
print(net.rnn.state_info(3), net.rnn[1], len(net.rnn))
