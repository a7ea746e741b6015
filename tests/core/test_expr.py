"""Expressions: one grammar, and what prints them."""

import math

import pytest

from mxcore.fusion.expr import FUNCTIONS, Expr
from mxcore.plugin import Float, MXNetError, op, print_with


@pytest.mark.parametrize(
    "text, values, result",
    [
        ("a + b * 2", dict(a=1.0, b=3.0), 7.0),
        ("-a ** 2", dict(a=3.0), -9.0),
        ("tanh(a) if a > 0 else a / 4", dict(a=-2.0), -0.5),
        ("maximum(minimum(a, b), 1)", dict(a=5.0, b=3.0), 3.0),
        ("a % b", dict(a=7.0, b=4.0), 3.0),
        ("1 / (1 + exp(-a))", dict(a=0.0), 0.5),
        ("a > 1 and b < 2", dict(a=2.0, b=1.0), True),
        ("not a == b", dict(a=2.0, b=1.0), True),
    ],
)
def test_the_printed_text_computes_the_expression(text, values, result):
    class m:  # the functions of the table, over Python floats
        exp, tanh = math.exp, math.tanh
        maximum, minimum, power, mod = max, min, pow, math.fmod

        @staticmethod
        def where(c, a, b):
            return a if c else b

    e = Expr(text)
    assert e.names == set(values)
    source = print_with(e.tree, str, lambda fn, args: f"m.{fn}({', '.join(args)})", lambda v: f"float64({v!r})")
    assert eval(source, {"m": m, "float64": float, **values}) == result


def test_names_and_numbers_are_printed_as_the_language_has_them():
    assert (
        print_with(Expr("x * 2").tree, {"x": "v0"}.get, None, lambda v: f"float32({float(v)!r})")
        == "(v0 * float32(2.0))"
    )


@pytest.mark.parametrize(
    "text, problem",
    [
        ("exp(a", "was never closed"),
        ("foo(a)", "unknown function 'foo'"),
        ("expp(a)", "did you mean 'exp"),
        ("exp(a, b)", "takes 1 argument"),
        ("a[0]", "not allowed"),
        ("lambda: 1", "not allowed"),
        ("'x'", "not allowed"),
        ("a < b < c", "not allowed"),
        ("__import__('os')", "unknown function"),
        ("a.real", "not allowed"),
        ("(a, b)", "not allowed"),
    ],
)
def test_anything_else_is_refused_at_declaration(text, problem):
    with pytest.raises(MXNetError, match=problem):
        Expr(text)


def test_unknown_names_are_refused_at_declaration():
    with pytest.raises(MXNetError, match="unknown name 'y'"):
        op("t", expr="data * y", factor=Float(1.0))(lambda k, p, data: data)


def test_the_table_is_the_whole_language():
    assert all(n in (1, 2, 3) for n in FUNCTIONS.values()) and len(FUNCTIONS) > 40
