"""A normalization takes the positive part behind it along, in programs that train: the same numbers."""

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.call import op_context
from mxcore.executor import passes_off
from mxcore.plugin import compute, find_op
from tests.executor.training import arrays_of, steps, trained

PASS = "norm_relu"
F = mx.sym
JOINED = "_contrib_BatchNormWithReLU"


def check(symbol, shape=(4, 3, 5, 2), **kw):
    kw = {"steps": 2, **kw}
    arrays = arrays_of(symbol, data=shape)
    with passes_off(PASS):
        want, plain = trained(symbol, arrays, **kw)
    found, executor = trained(symbol, arrays, **kw)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    assert JOINED not in steps(plain)
    return steps(executor)


def norm(x, name, **kw):
    return F.BatchNorm(x, name=name, **{"fix_gamma": False, **kw})


@pytest.mark.parametrize("kw", [{}, {"axis": 3}, {"fix_gamma": True}, {"use_global_stats": True}, {"eps": 0.1}])
@pytest.mark.parametrize("req", ["write", "add"])
def test_the_same_numbers(kw, req):
    data = F.Variable("data")
    x = F.Activation(norm(data, "a", **kw), act_type="relu") * data
    names = check(F.Activation(norm(x, "b", **kw), act_type="relu"), req=req)
    assert names.count(JOINED) == names.count("_backward_contrib_BatchNormWithReLU") == 2
    assert "BatchNorm" not in names and "_backward_BatchNorm" not in names


def test_other_ranks():
    assert JOINED in check(F.Activation(norm(F.Variable("data"), "a"), act_type="relu"), (8, 3))


@pytest.mark.parametrize("which", ["data", "a_gamma"])
def test_gradients_that_nobody_wants(which):
    symbol = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    check(symbol, req={**dict.fromkeys(symbol.list_arguments(), "null"), which: "write"})


def read_twice(x):
    y = norm(x, "a")
    return F.Activation(y, act_type="relu") + y


def shown(x):
    y = norm(x, "a")
    return F.Group([F.Activation(y, act_type="relu"), y])


def another_function(x):
    return F.Activation(norm(x, "a"), act_type="tanh")


def with_statistics(x):
    y = norm(x, "a", output_mean_var=True)
    return F.Group([F.Activation(y[0], act_type="relu"), y[1]])


@pytest.mark.parametrize("net", [read_twice, shown, another_function, with_statistics])
def test_what_stays(net):
    assert JOINED not in check(net(F.Variable("data")))


def test_the_positive_part_may_be_read_by_many():
    y = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    assert check(F.Group([y, F.tanh(y) + y * y])).count(JOINED) == 1


def test_a_gradient_of_both_of_several_readers():
    """What comes back is added up before it reaches the activation."""
    y = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    z = F.Activation(norm(y, "b"), act_type="relu")
    names = check(F.elemwise_add(y, z))
    assert names.count("_backward_contrib_BatchNormWithReLU") == 2


def test_predicting_programs_stay():
    symbol = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    arrays = arrays_of(symbol, data=(2, 3, 4))
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    executor = symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, None, "null", aux)
    executor.forward(is_train=False)
    assert JOINED not in [s.op.name for s in executor._instance(False, False)[0].program.steps if s.head < 0]


@pytest.mark.parametrize("forward, backward", [(True, False), (False, True), (False, False)])
def test_other_modes_of_forward_and_backward(forward, backward):
    """What was positive is told by the statistics that the forward pass used."""
    symbol = F.Activation(norm(F.Variable("data"), "a"), act_type="relu") * 2
    arrays = arrays_of(symbol, data=(4, 3, 5, 2))

    def run():
        args = {n: arrays[n].copy() for n in symbol.list_arguments()}
        aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
        grads = {n: mx.nd.zeros(a.shape) for n, a in args.items()}
        executor = symbol.bind(mx.cpu(), args, grads, "write", aux)
        executor.forward(is_train=forward)
        executor.backward(mx.nd.array(np.random.default_rng(3).standard_normal((4, 3, 5, 2))), is_train=backward)
        return [g.asnumpy() for g in grads.values()]

    with passes_off(PASS):
        want = run()
    for a, b in zip(run(), want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("params", [{}, {"axis": 2}, {"fix_gamma": False}])
def test_the_kernel_is_the_body(train, params):
    """Also with statistics that are not those of the data."""
    rng = np.random.default_rng(0)
    dy, y, x = rng.standard_normal((3, 4, 3, 3)).astype(np.float32)
    rows = [rng.standard_normal(3).astype(np.float32) for _ in range(2)]
    scales = [np.abs(rng.standard_normal(3)).astype(np.float32) + 0.3 for _ in range(3)]
    ins = [dy, np.maximum(y, 0), x, scales[0], rows[0], scales[1], rows[1], scales[2]]
    name = "_backward_contrib_BatchNormWithReLU"
    op, k = find_op(name), op_context(mx.cpu(), train)
    p = op.parse(params)
    found, want = compute(name, k, p, *[a.copy() for a in ins]), op.body(k, p, *[a.copy() for a in ins])
    for a, b in zip(found[:3], want):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("frozen", [True, False])
def test_what_is_no_number_stays_so(frozen):
    symbol = F.Activation(norm(F.Variable("data"), "a", use_global_stats=frozen), act_type="relu")
    arrays = arrays_of(symbol, data=(4, 3, 2))
    arrays["data"][1, 2, 0] = np.nan
    with passes_off(PASS):
        want, _ = trained(symbol, arrays, steps=2)
    found, _ = trained(symbol, arrays, steps=2)
    for a, b in zip(found, want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_factors_that_are_written_before_backward():
    """As of two networks that train by turns: what was positive is told by what came out."""
    symbol = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    arrays = arrays_of(symbol, data=(4, 3, 5))

    def run():
        args = {n: arrays[n].copy() for n in symbol.list_arguments()}
        aux = {n: arrays[n].copy() for n in symbol.list_auxiliary_states()}
        grads = {n: mx.nd.zeros(a.shape) for n, a in args.items()}
        executor = symbol.bind(mx.cpu(), args, grads, "write", aux)
        executor.forward(is_train=True)
        args["a_beta"][:] = -10
        args["a_gamma"][:] = 3
        executor.backward(mx.nd.array(np.random.default_rng(3).standard_normal((4, 3, 5))))
        return [g.asnumpy() for g in grads.values()]

    with passes_off(PASS):
        want = run()
    for a, b in zip(run(), want):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_groups_stay_where_they_are():
    with mx.AttrScope(ctx_group="g"):
        symbol = F.Activation(norm(F.Variable("data"), "a"), act_type="relu")
    executor = symbol.simple_bind(mx.cpu(0), group2ctx={"g": mx.cpu(1)}, data=(2, 3, 4))
    executor.backward(executor.forward(is_train=True)[0])
    steps = executor._instance(True, True)[0].program.steps
    where = {s.op.name: s.ctx for s in steps if s.head < 0 and "BatchNorm" in s.op.name}
    assert where == dict.fromkeys((JOINED, "_backward_contrib_BatchNormWithReLU"), mx.cpu(1))
