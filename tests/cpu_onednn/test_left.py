"""Parts of convolutions with channels last that are left to other plugins' kernels."""

import numpy as np
import pytest

import mxcore as mx
from mxcore import autograd, channels_last
from mxcore.executor import passes_off
from mxcore_cpu.kernels import winograd
from mxcore_onednn import last, others, rules
from mxcore_onednn.convolution import Geometry
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512

pytestmark = pytest.mark.usefixtures("provider", "no_plans_are_left")


def geometry(n=1, channels=32, filters=48, size=(16, 16), kernel=(3, 3), pad=(1, 1), **changed):
    dst = (n, filters, *(s + 2 * p - k + 1 for s, p, k in zip(size, pad, kernel)))
    one = (1,) * len(size)
    g = Geometry((n, channels, *size), (filters, channels, *kernel), dst, one, pad, one, 1, last=True)
    return g._replace(**changed)


@pytest.mark.parametrize(
    "isa, piece, g, left",
    [
        (ISA_AVX512, "forward", geometry(), True),
        (ISA_AVX512, "data", geometry(), True),
        (ISA_AVX512, "weight", geometry(), True),
        (ISA_AVX512, "forward", geometry(size=(12, 12)), False),
        (ISA_AVX512, "forward", geometry(n=2, size=(12, 12)), True),
        (ISA_AVX512, "forward", geometry(channels=16), False),
        (ISA_AVX512, "forward", geometry(stride=(2, 2)), False),
        (ISA_AVX512, "forward", geometry(groups=2), False),
        (ISA_AVX512, "forward", geometry(dtype="bfloat16"), False),
        (ISA_AVX512, "forward", geometry(pad=(3, 3)), False),
        (ISA_AVX512, "forward", geometry(kernel=(5, 5), pad=(2, 2)), False),
        (ISA_AVX512, "forward", geometry(size=(1000,), kernel=(3,), pad=(1,)), False),
        (ISA_AVX512, "forward", geometry(kernel=(1, 1), pad=(0, 0)), False),
        (ISA_AVX512, "data", geometry(kernel=(1, 1), pad=(0, 0)), False),
        (ISA_AVX2, "forward", geometry(), False),
        (ISA_AVX2, "weight", geometry(), True),
        (ISA_AVX2, "data", geometry(n=2), True),
        (ISA_AVX2, "forward", geometry(n=2, channels=16), True),
        (ISA_AVX2, "weight", geometry(kernel=(1, 1), pad=(0, 0)), False),
    ],
)
def test_what_is_left(isa, piece, g, left):
    assert rules.left(isa, piece, g) is left


@pytest.mark.parametrize("core, left", [("Haswell", True), ("SkylakeX", False)])
def test_weights_of_one_place_are_left_where_blas_is_narrow(monkeypatch, core, left):
    monkeypatch.setattr(rules, "blas_core", lambda: core)
    assert rules.left(ISA_AVX512, "weight", geometry(kernel=(1, 1), pad=(0, 0))) is left


class Net(mx.gluon.nn.HybridBlock):
    def __init__(self, biased):
        super().__init__()
        conv = mx.gluon.nn.Conv2D
        self.first, self.second = (conv(c, 3, padding=1, in_channels=32, use_bias=biased) for c in (32, 48))
        self.third = conv(32, 1, in_channels=48, use_bias=biased)

    def hybrid_forward(self, F, x):
        return self.third(F.tanh(self.second(F.tanh(self.first(x)))))


def trained(biased, data_grad):
    mx.random.seed(5)
    net = Net(biased)
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True, static_shape=True)
    x, found = mx.nd.array(np.random.RandomState(0).randn(3, 32, 15, 14)), []
    if data_grad:
        x.attach_grad()
    for _ in range(3):
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        found += [loss.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]
        found += [x.grad.asnumpy()] if data_grad else []
    return found


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("data_grad", [False, True])
def test_networks_train_alike_with_tiles_and_without(monkeypatch, biased, data_grad):
    used = []
    # So small a network with AVX2, too.
    monkeypatch.setattr(last, "left", lambda isa, piece, g: rules.left(ISA_AVX512, piece, g))
    monkeypatch.setattr(channels_last, "_worth", lambda turned, spared: True)
    for name in ("convolution", "weight_gradient"):
        real = getattr(winograd, name)
        monkeypatch.setattr(winograd, name, lambda *args, real=real, name=name: (used.append(name), real(*args)))
    with_tiles = trained(biased, data_grad)
    if winograd.usable(32, 32):
        assert {*used} == {"convolution", "weight_gradient"}
    with passes_off("onednn_channels_last"):
        plain = trained(biased, data_grad)
    used.clear()
    monkeypatch.setattr(others, "kernel_without", lambda *args: None)  # another plugin's kernels are not there
    without = trained(biased, data_grad)
    assert not used
    for a, b, c in zip(with_tiles, plain, without, strict=True):
        for other in (b, c):
            np.testing.assert_allclose(a, other, rtol=1e-4, atol=1e-5 * max(np.abs(a).max(), 1e-3))
