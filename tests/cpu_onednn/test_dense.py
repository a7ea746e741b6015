"""Fully connected layers that are normalized: the normalization goes into their weights, where that pays."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.gluon import nn
from mxcore_onednn import layers, rules
from mxcore_onednn.library import ISA_AVX2, ISA_AVX512, Refused
from tests.cpu_onednn.support import check_close, forget, numbers
from tests.cpu_onednn.test_regions import PASS, F, bound, check, passes_off, plan_of, regions, results
from tests.executor.training import arrays_of

pytestmark = pytest.mark.usefixtures("provider", "no_plans_are_left")


@pytest.fixture
def folding(monkeypatch):
    """However small layers are."""
    monkeypatch.setattr(layers, "folds", lambda *args: True)
    forget()


def dense(x, units, name, act="relu", **args):
    y = F.BatchNorm(F.FullyConnected(x, num_hidden=units, name=f"{name}_dense", **args), name=f"{name}_norm")
    return F.Activation(y, act_type=act) if act else y


def shown(symbol, arrays):
    """What the regions of a program consist of, and how many of their steps are the library's and none of weights."""
    return [
        (step.op.consists, sum(1 for i, s in enumerate(plan_of(step).steps) if i not in plan_of(step).keeps))
        for step in regions(symbol, arrays)
    ]


@pytest.mark.usefixtures("folding")
class TestFolded:
    def test_numbers_are_those_of_a_plain_sum(self):
        data, weight, bias, gamma, beta, mean = numbers(0, (5, 7), (6, 7), 6, 6, 6, 6)
        var = np.abs(numbers(1, 6)[0]) + 0.5
        y = F.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="c")
        y = F.tanh(F.BatchNorm(y, fix_gamma=False, eps=0.25, name="n"))
        names = dict(data=data, c_weight=weight, c_bias=bias, n_gamma=gamma, n_beta=beta)
        names |= dict(n_moving_mean=mean, n_moving_var=var)
        arrays = {n: mx.nd.array(a) for n, a in names.items()}
        (found,) = results(y, arrays)
        want = (data.astype(np.float64) @ weight.T + bias - mean) / np.sqrt(var + 0.25) * gamma + beta
        check_close([found], [np.tanh(want)])
        assert shown(y, arrays) == [(("FullyConnected", "BatchNorm", "tanh"), 1)]

    @pytest.mark.parametrize("act", ["relu", "sigmoid", None])
    @pytest.mark.parametrize("no_bias", [False, True])
    def test_layers_behind_one_another(self, act, no_bias):
        y = dense(dense(mx.sym.Variable("data"), 24, "a", act, no_bias=no_bias), 8, "b", act, no_bias=no_bias)
        arrays = arrays_of(y, data=(4, 12))
        check(y, arrays)
        assert [steps for _, steps in shown(y, arrays)] == [2]

    def test_behind_images(self):
        """Each result sees a whole image, which stays as the convolution has left it."""
        x = F.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=16, name="c")
        y = dense(F.Activation(x, act_type="relu"), 12, "a", None)
        arrays = arrays_of(y, data=(2, 8, 6, 5))
        check(y, arrays, 1)

    def test_sums_of_rows_are_copied_nowhere(self):
        data = mx.sym.Variable("data")
        y = dense(data, 16, "a", "sigmoid") + dense(data, 16, "b", "sigmoid")
        y = F.BatchNorm(y, name="n")
        arrays = arrays_of(y, data=(4, 12))
        check(y, arrays)
        forget()
        assert sum(steps for _, steps in shown(y, arrays)) == 4  # two products, a sum, and that normalization

    def test_one_weight_beside_images_and_rows(self):
        data, w = mx.sym.Variable("data"), mx.sym.Variable("w")
        parts = [
            F.BatchNorm(F.FullyConnected(x, w, num_hidden=8, no_bias=True, name=f"d{i}"), name=f"n{i}")
            for i, x in enumerate([data, F.Flatten(data)])
        ]
        y = F.Activation(parts[0] + parts[1], act_type="relu")
        check(y, arrays_of(y, data=(3, 4, 2, 3)))

    def test_a_value_that_others_read_stays(self):
        x = F.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="d")
        for y in (F.Group([F.BatchNorm(x, name="n"), x]), F.BatchNorm(x, name="n") * F.tanh(x)):
            check(y, arrays_of(y, data=(3, 4)), 0)

    def test_other_axes_stay(self):
        x = F.FullyConnected(mx.sym.Variable("data"), num_hidden=8, flatten=False, name="d")
        for axis in (1, 2):
            y = F.BatchNorm(x, axis=axis, name="n")
            check(y, arrays_of(y, data=(3, 4, 5)), 0)
        y = F.BatchNorm(F.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="d"), axis=0, name="n")
        check(y, arrays_of(y, data=(3, 4)), 0)

    def test_what_is_written_is_folded_anew(self, monkeypatch):
        made, folded = [], layers._folded
        monkeypatch.setattr(layers, "_folded", lambda *a, **k: [made.append(1), folded(*a, **k)])
        y = dense(mx.sym.Variable("data"), 24, "a")
        arrays = arrays_of(y, data=(4, 12))
        executor = bound(y, arrays)
        for _ in range(4):
            executor.forward(is_train=False)[0].wait_to_read()
        before = len(made)
        for name in ("a_dense_weight", "a_dense_bias", "a_norm_beta", "a_norm_moving_mean", "a_norm_moving_var"):
            arrays[name][:] = arrays[name] * 1.5 + 0.1
            with passes_off(PASS):
                want = results(y, arrays)
            check_close([executor.forward(is_train=False)[0].asnumpy()], want)
        assert len(made) == before + 5

    def test_training_moves_statistics_and_what_predicts_sees_them(self):
        net = nn.HybridSequential()
        net.add(nn.Dense(16), nn.BatchNorm(), nn.Activation("relu"), nn.Dense(3))
        net.initialize(mx.init.Xavier())
        net.hybridize(static_alloc=True, static_shape=True)
        rng = np.random.default_rng(0)
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(4):
            x = mx.nd.array(rng.standard_normal((8, 5)) + 2)
            with mx.autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(8)
            with passes_off(PASS):
                want = net(x).asnumpy()
            check_close([net(x).asnumpy()], [want])

    def test_it_is_refused(self, monkeypatch):
        """Without code for a layer all are computed one by one."""

        def none(*args):
            raise Refused("no code")

        monkeypatch.setattr(layers._Builder, "_taking", none)
        y = dense(mx.sym.Variable("data"), 24, "a")
        check(y, arrays_of(y, data=(4, 12)), 0)


def test_only_where_it_pays():
    y = dense(mx.sym.Variable("data"), 24, "a")
    check(y, arrays_of(y, data=(4, 12)), 0)
    large = dense(mx.sym.Variable("data"), 512, "a")
    check(large, arrays_of(large, data=(16, 256)), 1)
    plain = F.Activation(F.FullyConnected(mx.sym.Variable("data"), num_hidden=512, name="d"), act_type="relu")
    check(plain, arrays_of(plain, data=(16, 256)), 0)
    for isa in (ISA_AVX2, ISA_AVX512):
        assert rules.folds(isa, 64, 512, 512)
        assert not rules.folds(isa, 1, 4096, 4096) and not rules.folds(isa, 32, 64, 64)
    assert rules.folds(ISA_AVX512, 256, 1024, 1024) and not rules.folds(ISA_AVX2, 256, 1024, 1024)
