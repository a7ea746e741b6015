"""What the property tests stand on: uses changed at random, and a check that catches all kinds of misconduct."""

import random
import time
import warnings

import numpy as np
import pytest

import mxcore as mx
from mxcore._core.errors import error
from mxcore.plugin import Float, Int, op
from mxcore.testing import robust
from mxcore.testing.mutate import Use, mutated
from mxcore.testing.robust import Hang, bounded_memory, check_use, deadline
from mxcore.testing.sample import Sample

SAMPLES = [Sample((2, 3), params={"n": 2})]


def declare(body, rule=None, **kw):
    """An operator `odd` with a whole number `n`, around a body."""
    kw.setdefault("grad", lambda F, dy: dy * 2)
    found = op("odd", inputs="data", n=Int(1, ge=0), samples=SAMPLES, **kw)(body)
    if rule is not None:
        found.shape(rule)
    return found


def use_of(o, **kwargs):
    use = Use(o, SAMPLES[0], "float32")
    use.kwargs.update(kwargs)
    return use


def double(k, p, data):
    return data * 2


def noisy(k, p, data):
    warnings.warn("look here", UserWarning, stacklevel=1)
    return data * 2


def leaky(k, p, data):
    mx.autograd.set_recording(True)
    return data * 2


def slow(k, p, data):
    time.sleep(30)
    return data


def refusing(k, p, data):
    raise error(ValueError, "no")


def moody(k, p, data):
    return data * 2 if k.shapes is None else 1 / 0


def broken_rule(p, ins):
    raise KeyError("data")


def late_rule(p, ins):
    if p.n == 7:
        raise ValueError("n must not be 7")
    return [ins[0]]


def test_right_operators_pass():
    assert check_use(use_of(declare(double))) == "result"
    assert check_use(use_of(declare(double), n=-1)) == "error"
    assert check_use(use_of(declare(double, late_rule), n=7)) == "error"
    assert check_use(use_of(declare(refusing))) == "error"  # the core adds the name


@pytest.mark.parametrize(
    "body, rule, words",
    [
        (noisy, None, "it warns: UserWarning: look here"),
        (double, broken_rule, "eager, it raises KeyError"),
        (leaky, None, "'recording': True"),
        (lambda k, p, data: data / 0, None, "it warns: RuntimeWarning: divide by zero"),
    ],
)
def test_misconduct_is_caught(body, rule, words):
    try:
        with pytest.raises(AssertionError, match=words):
            check_use(use_of(declare(body, rule)))
    finally:
        mx.autograd.set_recording(False)


def test_inference_and_eager_must_agree(monkeypatch):
    o = declare(double)
    monkeypatch.setattr(robust, "_inferred", lambda use, graph: ([(2, 4)], ["float64"]))
    with pytest.raises(AssertionError, match=r"output 0 is float32\[2, 3\], inference says float64\[2, 4\]"):
        check_use(use_of(o))


def test_eager_and_bound_must_agree():
    with pytest.raises(AssertionError, match="it runs eagerly, bound it says: .*odd.*division by zero"):
        check_use(use_of(declare(moody)))


def test_gradients_of_a_wrong_shape_are_clear_errors():
    wrong = declare(double, grad=lambda F, dy: F.sum(dy, axis=0))
    x = mx.nd.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = wrong(x)
    with pytest.raises(
        mx.MXNetError,
        match=r"^gradient rule of operator odd: the gradient of input 'data' has shape \(3,\), float32, cpu\(0\) "
        r"instead of \(2, 3\), float32, cpu\(0\)$",
    ):
        y.backward()


def test_an_error_without_the_name_is_caught(monkeypatch):
    o = declare(double)
    monkeypatch.setattr(o.parser, "op", "something")
    with pytest.raises(AssertionError, match="eager, its error does not name the operator"):
        check_use(use_of(o, n=-1))


def test_a_hang_is_caught():
    with pytest.raises(AssertionError, match="no answer after 0.2 seconds"):
        check_use(use_of(declare(slow)), seconds=0.2)
    with pytest.raises(Hang), deadline(0.05):
        time.sleep(1)


def test_memory_is_bounded():
    with bounded_memory(2**28), pytest.raises(MemoryError):
        np.ones(2**29, np.uint8)


def test_changes_are_the_same_again_and_of_every_kind():
    o = op(
        "odd",
        inputs="data other",
        n=Int(1),
        s=Float(1.0),
        samples=[Sample((2, 3), (2, 3), params={"n": 2}), Sample((1, 4), (1, 4))],
    )(lambda k, p, data, other: data)
    uses = [mutated(o, random.Random(i)) for i in range(400)]
    assert [repr(u) for u in uses] == [repr(mutated(o, random.Random(i))) for i in range(400)]
    notes = {n.split(" of ")[0].split(" input ")[0].split()[0] for u in uses for n in u.notes}
    assert notes >= {
        "parameter",
        "no",
        "rank",
        "size",
        "dtype",
        "dropped",
        "added",
        "exchanged",
        "foreign",
        "input",
        "last",
        "values",
    }
    assert {u.inputs[0].ndim for u in uses if u.inputs and isinstance(u.inputs[0], np.ndarray)} >= {0, 1, 2, 3, 8}
    assert all(a.size <= 4096 for u in uses for a in u.inputs if isinstance(a, np.ndarray))
