"""Distributions as objects in the manner of forecasting libraries; likelihoods, reparameterised samples, a mixture."""

import math

import mxnet as mx
import numpy as onp
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import HybridBlock, nn

npx.set_np()
mx.random.seed(3)


class Distribution:
    def sample_mean(self, n):
        return np.mean(self.sample(n), axis=0)

    @property
    def stddev(self):
        return np.sqrt(self.variance)


class Gaussian(Distribution):
    def __init__(self, mu, sigma):
        self.mu, self.sigma = mu, sigma

    def log_prob(self, x):
        return -1.0 * (np.log(self.sigma) + 0.5 * math.log(2 * math.pi) + 0.5 * np.square((x - self.mu) / self.sigma))

    def sample(self, n):
        return np.random.normal(self.mu, self.sigma, size=(n,) + self.mu.shape)

    variance = property(lambda self: self.sigma**2)


class Laplace(Distribution):
    def __init__(self, mu, b):
        self.mu, self.b = mu, b

    def log_prob(self, x):
        return -np.log(2.0 * self.b) - np.abs((x - self.mu) / self.b)

    variance = property(lambda self: 2.0 * self.b**2)


class StudentT(Distribution):
    def __init__(self, mu, sigma, nu):
        self.mu, self.sigma, self.nu = mu, sigma, nu

    def log_prob(self, x):
        half = (self.nu + 1.0) / 2.0
        z = (x - self.mu) / self.sigma
        return (
            npx.gammaln(half)
            - npx.gammaln(self.nu / 2.0)
            - 0.5 * np.log(math.pi * self.nu)
            - np.log(self.sigma)
            - half * np.log1p(z**2 / self.nu)
        )

    variance = property(lambda self: np.where(self.nu > 2.0, self.sigma**2 * self.nu / (self.nu - 2.0), np.inf))


class NegativeBinomial(Distribution):
    def __init__(self, mu, alpha):
        self.mu, self.alpha = mu, alpha

    def log_prob(self, x):
        r, m = 1.0 / self.alpha, self.alpha * self.mu
        return x * np.log(m / (1.0 + m)) - r * np.log1p(m) + npx.gammaln(x + r) - npx.gammaln(x + 1.0) - npx.gammaln(r)

    variance = property(lambda self: self.mu * (1.0 + self.mu * self.alpha))


def softplus(x):
    return npx.activation(x, act_type="softrelu")


class Projection(HybridBlock):
    """Features to the parameters of a distribution."""

    def __init__(self, out, domain_map, **kwargs):
        super().__init__(**kwargs)
        self.domain_map = domain_map
        with self.name_scope():
            self.heads = [nn.Dense(1, flatten=False, weight_initializer=mx.init.Constant(0.1)) for _ in range(out)]
            for head in self.heads:
                self.register_child(head)

    def hybrid_forward(self, F, x):
        found = [F.np.squeeze(head(x), axis=-1) for head in self.heads]
        return self.domain_map(F, *found)


OUTPUTS = {
    "gaussian": (Gaussian, 2, lambda F, mu, s: (mu, F.npx.activation(s, act_type="softrelu"))),
    "laplace": (Laplace, 2, lambda F, mu, s: (mu, F.npx.activation(s, act_type="softrelu"))),
    "student": (
        StudentT,
        3,
        lambda F, mu, s, nu: (
            mu,
            F.npx.activation(s, act_type="softrelu"),
            2.0 + F.npx.activation(nu, act_type="softrelu"),
        ),
    ),
    "negative binomial": (
        NegativeBinomial,
        2,
        lambda F, mu, a: (F.npx.activation(mu, act_type="softrelu"), F.npx.activation(a, act_type="softrelu")),
    ),
}
rng = onp.random.RandomState(0)
features = np.array(rng.normal(size=(16, 3)).astype("float32"))
target = np.array(rng.poisson(3, 16).astype("float32"))
for name, (cls, n, domain_map) in OUTPUTS.items():
    for hybrid in (False, True):
        net = Projection(n, domain_map)
        net.initialize()
        if hybrid:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
        losses = []
        for _ in range(12):
            with autograd.record():
                d = cls(*net(features))
                l = -d.log_prob(target)
            l.backward()
            trainer.step(16)
            losses.append(l.mean().item())
        print(name, hybrid, "%.4f %.4f" % (losses[0], losses[-1]), "%.4f" % d.stddev.mean().item())

# Quantile loss over several quantiles at once.
quantiles = [0.1, 0.5, 0.9]


def quantile_loss(y_true, y_pred):
    total = 0.0
    for i, q in enumerate(quantiles):
        under = y_true - y_pred[..., i]
        total = total + np.maximum(q * under, (q - 1.0) * under)
    return total / len(quantiles)


net = nn.Dense(3, weight_initializer=mx.init.Constant(0.0))
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.3})
for _ in range(60):
    with autograd.record():
        l = quantile_loss(target, net(features))
    l.backward()
    trainer.step(16)
pred = net(features)
print("coverage", [round((target <= pred[:, i]).astype("float32").mean().item(), 2) for i in range(3)])

# Gradients through samples.
mu, sigma = np.array([0.5, -1.0]), np.array([1.0, 2.0])
mu.attach_grad()
sigma.attach_grad()
with autograd.record():
    s = Gaussian(mu, sigma).sample(4000)
    l = np.mean(s, axis=0).sum()
l.backward()
print(s.shape, [round(float(v), 3) for v in mu.grad], bool((abs(sigma.grad) < 0.1).all()))
print([round(abs(float(v)), 0) for v in Gaussian(mu, sigma).sample_mean(4000) * 2])
# Mixture by log-sum-exp.
weights = np.log(npx.softmax(np.array([[0.0, 1.0]])))
parts = np.stack(
    [
        Gaussian(np.array([0.0]), np.array([1.0])).log_prob(target),
        Gaussian(np.array([4.0]), np.array([0.5])).log_prob(target),
    ],
    axis=-1,
)
joint = weights + parts
top = joint.max(axis=-1, keepdims=True)
print("mixture %.4f" % (top.squeeze(-1) + np.log(np.exp(joint - top).sum(axis=-1))).mean().item())
# Scaling by means of what was observed, lags, windows.
series = np.array(rng.gamma(2.0, 1.0, (2, 24)).astype("float32"))
observed = np.array((rng.rand(2, 24) > 0.2).astype("float32"))
scale = np.sum(series * observed, axis=1) / np.maximum(np.sum(observed, axis=1), 1.0)
scaled = series / np.expand_dims(scale, 1)
lags = np.stack([scaled[:, 24 - lag - 6 : 24 - lag] for lag in (1, 3, 12)], axis=-1)
print(scale, lags.shape, lags[0, -1], np.concatenate([lags, np.zeros((2, 6, 1))], axis=-1).sum())
