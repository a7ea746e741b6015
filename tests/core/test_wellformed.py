"""What is wrong with a declaration is told where it is made: what, where, what was expected."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.plugin import (
    Bool,
    DType,
    Enum,
    Float,
    Floats,
    GraphPass,
    Int,
    Ints,
    KernelSet,
    MXNetError,
    Sample,
    Shape,
    Str,
    op,
)


def declare(body=lambda k, p, data: data, name="test_declared", **kw):
    return op(name, **kw)(body)


TWO = dict(inputs="x y", body=lambda k, p, x, y_: x * y_)


@pytest.mark.parametrize(
    "inputs, rule, text",
    [
        (
            "x y",
            lambda F, p, dy, x, y: (dy * y, dy * x),
            "'y' is the first output there, and the operator has an input of that name; "
            r"write y_ for the input \(or like_y for its shape\), out_output for the output",
        ),
        ("x dy", lambda F, dy, x: (dy, None), "'dy' is the gradient .*, d_output for that gradient"),
        ("x p", lambda F, p, dy, x: (dy * p, dy * x), "'p' is the parameters there, .* write p_ for the input"),
        ("x F", lambda F, dy: (dy, F), "'F' is the operators there, .* write F_ for the input"),
        ("x needs", lambda needs, dy: (dy, needs), "write needs_ for the input"),
        ("x dys", lambda dys: (dys[0], None), "write dys_ for the input"),
        ("x y", lambda F, *dy: dy, "its arguments say what it needs, by position"),
        ("x y", lambda F, dy, *, x: dy, "its arguments say what it needs, by position"),
    ],
)
def test_a_rule_word_that_is_an_input_too_is_refused(inputs, rule, text):
    with pytest.raises(TypeError, match=f"gradient rule of operator test_declared: .*{text}"):
        declare(lambda k, p, one, two: one, inputs=inputs, grad=rule)


@pytest.mark.parametrize(
    "rule",
    [
        lambda F, p, dy, x, y_: (dy * y_, dy * x),
        lambda F, dy, x, y, y_: (dy * y_, dy * x + 0 * y),
        lambda F, d_output, out_output, x, y_: (d_output * y_, d_output * x),
    ],
)
def test_an_underscore_says_that_the_input_is_meant(rule, plug):
    plug(mxcore_ops=[declare(**TWO, grad=rule)])
    x, y = mx.nd.array([2.0]), mx.nd.array([5.0])
    for a in (x, y):
        a.attach_grad()
    with mx.autograd.record():
        z = mx.nd.test_declared(x, y)
    z.backward()
    assert (x.grad.asscalar(), y.grad.asscalar()) == (5, 2)


def two(k, p, data):
    return data, data


@pytest.mark.parametrize(
    "kw, text",
    [
        (dict(name="Weird-Name"), "'Weird-Name' is no name that Python could call"),
        (dict(aliases=("a b",)), "'a b' is no name that Python could call"),
        (dict(inputs="data data", body=lambda k, p, a, b: a), "two of its inputs are named 'data'"),
        (dict(outputs="a a", body=two), "two of its outputs are named 'a'"),
        (
            dict(inputs="args* last", body=lambda k, p, *a: a[0]),
            r"input 'args\*', of any number of arrays, must be the",
        ),
        (dict(p=Int(5, le=3)), "the default of its parameter 'p' must be int <= 3, got 5"),
        (dict(p=Enum("a b", "c")), "the default of its parameter 'p' must be one of a, b; got 'c'"),
        (dict(outputs="some* b", body=two), r"output 'some\*', of any number of arrays, must be the last one"),
        (dict(inputs="name"), "its input cannot be named 'name', which is a keyword of every operator's call"),
        (dict(params={"out": Float(1.0)}), "its parameter cannot be named 'out'"),
        (dict(params={"attr": Float(1.0)}), "its parameter cannot be named 'attr'"),
        (dict(_hidden=Float(1.0)), "parameter '_hidden' needs a name that begins with a letter"),
        (dict(ctx=Float(1.0)), "its parameter 'ctx' says where it runs, and so is a Str"),
        (dict(data=Float(1.0)), "'data' is both an input and a parameter"),
    ],
)
def test_names_that_nobody_could_use_are_refused(kw, text):
    with pytest.raises(ValueError, match=f"operator .*: .*{text}"):
        declare(**kw)


def test_what_looks_like_them_is_fine():
    assert declare(ctx=Str(""), body=lambda k, p, data: data).params.keys() == {"ctx"}
    declare(lambda k, p, *args: args[0], inputs="args*")
    declare(lambda k, p, data, bias=None: data, inputs="data bias[not no_bias]", no_bias=Float(0.0))
    declare(lambda k, p, dy, out: dy, name="_backward_declared", inputs="dy out")


@pytest.mark.parametrize(
    "body, inputs, text",
    [
        (lambda k, x: x, "data", r"its body takes \(k, x\); \(k, p, data\) is needed"),
        (lambda k, p, a, b: a, "data", r"its body takes \(k, p, a, b\); \(k, p, data\) is needed"),
        (lambda k, p, a: a, "a b[c]", r""),
        (lambda k, p: p, "data rest*", r"its body takes \(k, p\); \(k, p, data, \*rest\) is needed"),
        (7, "data", r"its body takes 7; \(k, p, data\) is needed"),
    ],
)
def test_bodies_take_the_inputs(body, inputs, text):
    if not text:  # parameters may leave the other one out
        declare(body, inputs=inputs, c=Float(0.0))
        return
    with pytest.raises(TypeError, match=f"operator test_declared: {text}"):
        declare(body, inputs=inputs)


RULES = r"\(p, ins\) -> outs, or \(p, ins, outs\) -> \(ins, outs\)"


@pytest.mark.parametrize(
    "what, rule, text",
    [
        ("shape", lambda ins: ins, rf"it takes \(ins\); {RULES} is needed"),
        ("dtype", lambda k, p, ins, outs: outs, rf"it takes \(k, p, ins, outs\); {RULES} is needed"),
        ("shape", [(2, 3)], rf"\[\(2, 3\)\] is no Python function; {RULES} is needed"),
        ("storage", lambda p, ins, outs: outs, r"\(p, stypes\) -> stypes of the outputs is needed"),
        ("cost", lambda p, ins: 1, r"\(p, ins, outs\) -> number is needed"),
        ("backward", lambda k, p, dys: dys, r"\(k, p, state, dys, ins, outs\) -> gradients of the inputs is needed"),
    ],
)
def test_rules_take_what_they_are_given(what, rule, text):
    with pytest.raises(TypeError, match=f"{what} rule of operator test_declared: .*{text}"):
        getattr(declare(), what)(rule)


@pytest.mark.parametrize(
    "fn, kw, text",
    [
        (lambda k: k, {}, r"it takes \(k\); \(k, p, \*inputs\) is needed"),
        (lambda k, p: p, {"out": True}, r"it takes \(k, p\); \(k, p, outs, \*inputs\) is needed"),
        (lambda k, p, data: data, {"when": lambda: True}, r"`when` takes \(\); a function \(p, \*specs\) -> bool"),
        (lambda k, p, data: data, {"when": True}, r"`when` takes True; a function \(p, \*specs\) -> bool is needed"),
    ],
)
def test_kernels_are_called_as_bodies_are(fn, kw, text):
    with pytest.raises(TypeError, match=f"kernel of operator relu: {text}"):
        KernelSet("cpu").kernel("relu", **kw)(fn)


def test_kernels_written_elsewhere_are_taken_at_their_word():
    cpu = KernelSet("cpu")
    assert cpu.kernel("relu", when=np.can_cast)(np.add) is np.add and len(cpu) == 1


def test_a_graph_pass_takes_a_graph():
    with pytest.raises(TypeError, match=r"graph pass 'p': it takes \(\); a function \(graph\) -> Graph is needed"):
        GraphPass("p", None, lambda: None)


def test_errors_of_declarations_are_mxnets_too():
    with pytest.raises(MXNetError):
        declare(name="a.b")


@pytest.mark.parametrize(
    "make, kind, text",
    [
        (lambda: Sample((2, 3), domain=(2, 1)), ValueError, r"domain must be \(low, high\), got \(2, 1\)"),
        (lambda: Sample((2, 3), dtypes="flot"), ValueError, "dtypes must be names like .*, got 'flot'"),
        (lambda: Sample((2, 3), dtypes=""), ValueError, "dtypes must be names like"),
        (lambda: Sample((2, 3), params=3), TypeError, "params must be a dict of parameters by name, got 3"),
        (lambda: Sample((2, 3), grad=(True, False)), ValueError, "a bool, or have one for each of 1 inputs"),
        (lambda: Sample((2, 3), grad=3), TypeError, "grad must be a bool, names of inputs, or .*, got 3"),
        (
            lambda: declare(samples=[Sample((2, 3), grad="weight")]),
            ValueError,
            "a sample differentiates by grad='weight': 'weight' is none of its inputs",
        ),
        (
            lambda: declare(
                lambda k, p, data, mean: (data, mean),
                inputs="data mean",
                aux="mean",
                samples=[Sample((2,), (2,), grad="data mean")],
            ),
            ValueError,
            "grad='data mean': 'mean' is an auxiliary state, which has no gradient",
        ),
        (lambda: Ints((2,), 5, 0), ValueError, "Ints: the interval from 5 to 0 is empty"),
        (lambda: declare(samples=[(2, 3)]), TypeError, r"its samples must be Sample objects, .* got \(2, 3\)"),
    ],
)
def test_samples_are_checked_as_they_are_made(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize("rule", [lambda p, ins: None, lambda p, ins: (2, 3), lambda p, ins, outs: None])
def test_a_rule_that_returns_no_list_is_told(rule):
    wrong = declare()
    wrong.shape(rule)
    with pytest.raises(TypeError, match="operator test_declared: its shape rule returned .*with a shape or None for"):
        wrong(mx.nd.ones((2, 3)))


def test_aliases_as_words(plug):
    first = op("aliased", aliases="aliased_a aliased_b")(lambda k, p, data: data * 2)
    assert first.aliases == ("aliased_a", "aliased_b")
    plug(mxcore_ops=[first])
    assert mx.nd.aliased_b(mx.nd.ones(2)).asnumpy().tolist() == [2, 2]
    assert op("aliased", "aliased_c", aliases=["aliased_d"])(lambda k, p, data: data).aliases == (
        "aliased_c",
        "aliased_d",
    )


def test_defaults_are_what_their_texts_say():
    o = op("test_wellformed_defaults", inputs="x", dtype=DType("float16"), shape=Shape(2), on=Bool(1), r=Floats(0.5))(
        lambda k, p, x: x
    )
    p = o.parse({})
    assert (p.dtype.itemsize, p.shape, p.on, p.r) == (2, (2,), True, (0.5,))
