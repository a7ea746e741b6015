"""The conformance kit catches what it is for: each wrong operator, by the check that is meant to."""

import functools

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.plugin import Float, Int, KernelSet, Sample, op
from mxcore.testing.conformance import Failures, check_op

SAMPLES = [Sample((3, 4)), Sample((0, 4))]
kept = []


def declare(body, **kw):
    """An operator around a body; `check_op` needs no registration."""
    kw.setdefault("grad", lambda F, dy: dy * 2)
    kw.setdefault("samples", SAMPLES)
    return op("wrong", inputs=kw.pop("inputs", "data"), **kw)(body)


def failed(o, **kw):
    """The checks that an operator fails."""
    with pytest.raises(Failures) as e:
        check_op(o, mx.cpu(), **kw)
    return {c for c, _ in e.value.failures}


def test_a_right_operator_passes():
    right = declare(lambda k, p, data: data * 2)
    check_op(right, mx.cpu())


def test_a_right_operator_of_two_inputs_passes():
    def body(k, p, a, b):
        return k.xp.tanh(a) * b, a + b

    right = declare(
        body,
        inputs="a b",
        outputs="product total",
        samples=[Sample((3, 4), (3, 4))],
        grad=lambda F, d_product, d_total, a, b: (
            d_product * b * (1 - F.square(F.tanh(a))) + d_total,
            d_product * F.tanh(a) + d_total,
        ),
    )
    check_op(right, mx.cpu())


def centered(gradient, **kw):
    """Data minus a moving mean, an auxiliary state, times a weight."""
    found = declare(
        lambda k, p, data, weight, mean: ((data - mean) * weight, mean * 0.5 + data.mean(axis=0) * 0.5),
        inputs="data weight mean",
        aux="mean",
        mutates="mean",
        grad=gradient,
        samples=[Sample((4, 3), (3,), (3,), **kw)],
    )
    found.shape(lambda p, ins, outs: ([ins[0], *[ins[0][1:] if ins[0] else None] * 2], [ins[0]]))
    return found


def test_states_are_not_differentiated():
    def right(F, dy, y, weight):
        return F.broadcast_mul(dy, weight), F.sum(dy * F.broadcast_div(y, weight), axis=0), None

    def of_data(F, dy, weight):
        return F.broadcast_mul(dy, weight), None, None

    check_op(centered(right), mx.cpu())
    assert "gradient" in failed(centered(of_data))


@pytest.mark.parametrize("grad", ["data", ("data",), (True, False, False)])
def test_a_sample_names_what_is_differentiated(grad):
    check_op(centered(lambda F, dy, weight: (F.broadcast_mul(dy, weight), None, None), grad=grad), mx.cpu())
    assert "gradient" in failed(
        centered(lambda F, dy, weight: (F.broadcast_mul(dy, weight), None, None), grad="weight")
    )


def test_a_sample_that_names_no_input_fails():
    late = declare(lambda k, p, data: data * 2, samples=lambda: [Sample((2, 3), grad="weight")])
    with pytest.raises(Failures, match="no input is named 'weight' as in its grad; there are data"):
        check_op(late, mx.cpu())


@pytest.mark.parametrize("rule", [lambda F, dy: dy * 3, lambda F, dy: dy * -2, lambda F, dy, data: dy * F.sign(data)])
def test_wrong_gradient(rule):
    assert failed(declare(lambda k, p, data: data * 2, grad=rule)) == {"gradient"}


def test_one_reason_is_told_once():
    with pytest.raises(Failures) as e:
        check_op(declare(lambda k, p, data: data * 2, grad=lambda F, dy: F.no_such_op(dy)), mx.cpu())
    assert str(e.value).count("no operator is named 'no_such_op'") == 1 and "\n  rule: as gradient" in str(e.value)
    assert all("no_such_op" in message for _, message in e.value.failures)


def test_wrong_second_gradient():
    """The first gradient is right; that of its operator is not."""
    forward = declare(
        lambda k, p, data: data * data * data,
        grad=lambda F, dy, data: (
            F.sum(F.stack(dy * data * data * 3, F.BlockGrad(dy * data)), axis=0) - F.BlockGrad(dy * data)
        ),
    )
    check_op(forward, mx.cpu())
    wrong = declare(lambda k, p, data: data * data * data, grad=lambda F, dy, data: dy * F.BlockGrad(data * data) * 3)
    assert failed(wrong) == {"second gradient"}


@pytest.mark.parametrize("rule", [lambda F, dy: F.BlockGrad(dy) * 2, lambda F, dy: F.BlockGrad(dy * 2)])
def test_a_linear_operator_whose_gradient_has_none(rule):
    """The gradient depends on the incoming gradient alone, so only its derivative for that shows the loss."""
    assert failed(declare(lambda k, p, data: data * 2, grad=rule)) == {"second gradient"}


def test_gradient_that_changes_from_call_to_call():
    """Each backward of its own is right; together they do not add up."""
    calls = []

    def rule(F, dy):
        calls.append(1)
        return dy * (2 if len(calls) % 3 else 4)

    assert failed(declare(lambda k, p, data: data * 2, grad=rule), checks=["grad_req"]) == {"grad_req"}


@functools.cache
def table(shape):
    return np.ones(shape, "float32")


@functools.cache
def gradient(shape):
    return mx.nd.ones(shape)


@pytest.mark.parametrize(
    "body, rule",
    [
        (lambda k, p, data: table(data.shape), lambda F, dy: F.zeros_like(dy)),
        (lambda k, p, data: table((2, *data.shape))[1], lambda F, dy: F.zeros_like(dy)),
        (lambda k, p, data: data * 1, lambda F, dy: gradient(dy.shape)),
    ],
    ids=["results", "views", "gradients"],
)
def test_what_is_kept_is_handed_out(body, rule):
    assert failed(declare(body, grad=rule, samples=[Sample((3, 4))]), checks=["owned"]) == {"owned"}


def test_graph_gradient_that_changes_from_call_to_call():
    """The same in a bound graph, whose gradient runs on without its rule."""
    calls = []

    def drifting(k, p, dy):
        calls.append(1)
        return dy * (2 + len(calls))

    tables.ops.items["wrong_back"] = op("wrong_back", inputs="dy", grad=None)(drifting)
    try:
        assert failed(
            declare(lambda k, p, data: data * 2, grad=lambda F, dy: F.wrong_back(dy)), checks=["bound grad_req"]
        ) == {"bound grad_req"}
    finally:
        del tables.ops.items["wrong_back"]


def test_missing_gradient():
    assert "gradient" in failed(op("wrong", samples=SAMPLES)(lambda k, p, data: data * 2))


def test_wrong_shape():
    assert failed(declare(lambda k, p, data: data[:, :2] * 2)) == {"declared"}


def test_shape_rule_that_disagrees():
    wrong = declare(lambda k, p, data: data.sum(1), grad=None)
    assert failed(wrong) == {"declared"}


def test_wrong_dtype(kernel):
    right = declare(lambda k, p, data: data * 2)
    kernel(right, lambda k, p, data: (data * 2).astype(np.float64), dtypes="f4 f8")
    assert failed(right) == {"kernels"}


def test_kernel_with_wrong_values(kernel):
    right = declare(lambda k, p, data: data * 2)
    kernel(right, lambda k, p, data: data * 2.001)
    assert {"value", "kernels"} <= failed(right)


def test_a_kernel_behind_a_better_one_is_checked_too(kernel):
    right = declare(lambda k, p, data: data * 2)
    kernel(right, lambda k, p, data: data * 2, priority=5)
    kernel(right, lambda k, p, data: data * 2.001)
    assert failed(right) == {"kernels"}


@pytest.mark.parametrize("keeps", [False, True])
def test_a_bound_call_that_keeps_its_arrays(kernel, keeps):
    right = declare(lambda k, p, data: data * 2)

    def double(k, p, outs, data):
        np.multiply(data, 2, out=outs[0])

    def binds(k, p, ins, outs):
        a, y = ins[0], outs[0]
        return lambda: np.multiply(a if keeps else ins[0], 2, out=y if keeps else outs[0])

    double.binds = binds
    kernel(right, double, out=True)
    if keeps:
        assert "kernels" in failed(right)
    else:
        check_op(right, mx.cpu())


def test_kernel_that_writes_beside_its_output(kernel):
    right = declare(lambda k, p, data: data * 2)

    def double(k, p, outs, data):
        np.multiply(data, 2, out=outs[0])
        data[:1] = 0

    kernel(right, double, out=True)
    assert {"kernels", "pure"} <= failed(right)


def test_mutated_input():
    def body(k, p, data):
        data += 1
        return data * 2

    assert "pure" in failed(declare(body))
    assert failed(declare(body), checks=["pure"]) == {"pure"}


def test_input_mutated_in_one_place():
    def body(k, p, data):
        double = data * 2
        data[:1, :1] = 7
        return double

    assert failed(declare(body)) == {"pure"}


def test_a_declared_mutation_passes():
    right = declare(
        lambda k, p, data, count: (data * 2, count + 1),
        inputs="data count",
        mutates="count",
        grad=None,
        samples=[Sample((3, 4), (3, 4), grad=False)],
    )
    check_op(right, mx.cpu())


def test_mutation_that_depends_on_float32():
    wrong = declare(
        lambda k, p, data, count: (data * 2, count + (1 if data.dtype == np.float64 else 2)),
        inputs="data count",
        mutates="count",
        grad=None,
        samples=[Sample((3, 4), (3, 4), grad=False)],
    )
    assert "value" in failed(wrong)


@pytest.mark.parametrize(
    "body",
    [
        lambda k, p, data: k.xp.asarray(np.asarray(data) * 2),
        lambda k, p, data: np.multiply(data, 2),
        lambda k, p, data: data * np.full((1, 4), 2, data.dtype),
        lambda k, p, data: data * 2 if float(data.sum()) < 1e9 else data,
        lambda k, p, data: k.xp.asarray(data.tolist()).astype(data.dtype).reshape(data.shape) * 2,
        lambda k, p, data: k.xp.float_power(data * 0 + 2, 1).astype(data.dtype) * data,
    ],
)
def test_hidden_host_copy(body):
    assert failed(declare(body)) == {"portable"}


def test_body_that_needs_more_than_half_precision():
    wrong = declare(lambda k, p, data: (data * 1e6 / 5e5).astype(data.dtype))
    assert failed(wrong) == {"half"}
    refusing = declare(lambda k, p, data: data * 2)
    refusing.dtype(_wide_only)
    check_op(refusing, mx.cpu())


def _wide_only(p, ins, outs):
    if ins[0] == np.float16:
        raise TypeError("float16 is too narrow")
    return ins, [ins[0]]


def test_leaked_buffer():
    def body(k, p, data):
        kept.append(data)
        return data * 2

    assert failed(declare(body)) == {"leak"}
    kept.clear()


def test_leaked_output():
    def body(k, p, data):
        kept.append(data * 2)
        return kept[-1]

    assert failed(declare(body)) == {"leak"}
    kept.clear()


def test_leaked_gradient_input():
    def rule(F, dy, data):
        kept.append(data)
        return dy * 2

    assert failed(declare(lambda k, p, data: data * 2, grad=rule)) == {"leak"}
    kept.clear()


def test_missing_sample():
    assert failed(op("wrong")(lambda k, p, data: data * 2)) == {"samples"}


def test_shape_only_input_used_for_its_values():
    wrong = declare(lambda k, p, data: data * 2, grad=lambda F, dy, like_data: F.elemwise_add(dy, dy + 0 * like_data))
    assert "rule" in failed(wrong)


def test_shape_only_input_returned():
    wrong = declare(lambda k, p, data: data * 1, grad=lambda F, dy, like_data: like_data)
    assert "rule" in failed(wrong)


def test_rule_that_reads_a_shape():
    wrong = declare(lambda k, p, data: data * 2, grad=lambda F, dy, data: dy * (2 + 0 * data.shape[0]))
    assert {"rule", "graph"} <= failed(wrong)


def test_body_that_needs_contiguous_inputs():
    def body(k, p, data):
        return data * (2 if data.flags.c_contiguous else 3)

    assert {"strided", "portable"} <= failed(declare(body))


def test_body_of_another_shape_without_elements():
    wrong = declare(lambda k, p, data: data * 2 if data.shape[0] else data[:, 0] * 2, samples=[Sample((3, 4))])
    assert failed(wrong) == {"empty"}


def test_body_that_stumbles_without_elements():
    wrong = declare(lambda k, p, data: data * 2 + 0 * data[0], samples=[Sample((3, 4))])
    assert failed(wrong) == {"empty"}


def test_outputs_wanted_alone():
    def body(k, p, data):
        return (data * 2, data * 3) if k.wanted is None else (None, data * 3) if k.wanted[1] else (data * 4, None)

    wrong = declare(body, outputs="double triple", grad=lambda F, d_double, d_triple: d_double * 2 + d_triple * 3)
    assert "wanted" in failed(wrong)


def test_random_operator_that_forgets_its_key():
    rs = np.random.RandomState(0)

    def body(k, p, data):
        return k.xp.asarray(rs.uniform(size=data.shape))

    wrong = declare(body, random=True, grad=None, samples=[Sample((30, 4), grad=False, check=lambda i, o: None)])
    assert failed(wrong, checks=["value"]) == {"value"}


def test_implausible_random_numbers():
    def uniform(inputs, outputs):
        assert abs(outputs[0].mean() - 0.5) < 0.1

    def body(k, p, data):
        return k.rng.uniform(data.shape, np.float32) + p.shift

    def make(shift):
        samples = [Sample((30, 40), grad=False, check=uniform)]
        return declare(body, random=True, grad=None, shift=Float(shift), samples=samples)

    check_op(make(0.0), mx.cpu(), ["declared", "value"])
    assert failed(make(0.3), checks=["value"]) == {"value"}


def test_parameters_that_do_not_survive_text():
    class Odd(Int):
        def format(self, value):
            return str(value + 1)

    wrong = declare(lambda k, p, data: data * 2, times=Odd(2), samples=[Sample((3, 4), params={"times": 3})])
    assert failed(wrong) == {"declared"}


def test_unknown_check():
    with pytest.raises(mx.MXNetError, match="no check is named 'valve'"):
        check_op("relu", mx.cpu(), ["valve"])


@pytest.fixture
def kernel():
    """Enter kernels of unregistered operators for the CPU; they are gone after the test."""
    mx.nd.zeros((1,)).wait_to_read()

    def enter(o, fn, **kw):
        table = KernelSet("cpu")
        table.kernel(o, **kw)(fn)
        tables.kernels.sets.setdefault("cpu", {}).setdefault("wrong", []).extend(table.entries)
        tables.changed()

    yield enter
    tables.kernels.sets["cpu"].pop("wrong", None)
    tables.changed()


def test_a_device_that_does_not_tell_what_overlaps(monkeypatch):
    right = declare(lambda k, p, data: data * 2)
    check_op(right, mx.cpu(), checks=["overlap"])
    monkeypatch.setattr(type(mx.cpu().device), "shares", lambda self, a, b: False)
    assert failed(right, checks=["overlap"]) == {"overlap"}


def test_a_device_that_copies_over_what_it_has_yet_to_read(monkeypatch):
    right = declare(lambda k, p, data: data * 2)

    def copy(self, a, dst):
        for i in range(len(dst)):
            dst[i] = a[i]

    monkeypatch.setattr(type(mx.cpu().device), "copy", copy)
    with pytest.raises(Failures, match="Device.copy of 'cpu' gives other values where the two are views"):
        check_op(right, mx.cpu(), checks=["overlap"])


@pytest.mark.parametrize("shape", [(2, 3), (40, 40)])
@pytest.mark.parametrize("expr", ["data * 3", "data / 2", "data * data"])
def test_an_expression_that_is_not_the_body(expr, shape):
    wrong = declare(lambda k, p, data: data * 2, expr=expr, samples=[Sample(shape)])
    assert failed(wrong) == {"fused"}


def test_a_kernel_that_forgets_unread_outputs(kernel):
    right = declare(lambda k, p, data: (data * 2, data * 3), outputs="a b", grad=lambda F, d_a, d_b: d_a * 2 + d_b * 3)

    def both(k, p, outs, data):
        for i, out in enumerate(outs):
            out[...] = data * (2 + i)

    kernel(right, both, out=True)
    with pytest.raises(Failures, match="wanted alone: .*`outs` holds None for an output that nobody reads"):
        check_op(right, mx.cpu())


def test_inputs_before_those_of_any_number_are_counted_apart():
    @op("toy_scaled_sum", inputs="scale args*", samples=[Sample((2, 3), (2, 3), (2, 3)), Sample((2,), (2,))])
    def right(k, p, scale, *args):
        return scale * sum(args)

    right.grad(lambda F, p, dy, scale, args: (dy * F.add_n(*args), [dy * scale] * p.num_args))
    check_op(right, mx.cpu())
