"""Random operators and densities refuse bad input: errors name the operator, what was wrong, what is allowed."""

import re

import numpy as np
import pytest

import mxcore as mx

from .bad_input import refusal

nd, sym = mx.nd, mx.sym


def A(*values, dtype="float32"):
    """An array of these values."""
    return nd.array(np.array(values), dtype=dtype)


#: operator, call, words of the message in their order
INF = float("inf")
CALLS = [
    (
        "_random_uniform",
        lambda: nd.random_uniform(2, 1, shape=2),
        "low must not be above high, got low 2.0 and high 1.0",
    ),
    ("_random_uniform", lambda: nd.random_uniform(low=None, shape=2), "parameter 'low' must be float, not None"),
    ("_random_uniform", lambda: nd.random_uniform(low="a", shape=2), "parameter 'low' must be float, got 'a'"),
    ("_random_uniform", lambda: nd.random_uniform(float("nan"), 1, shape=2), "low must be a finite number, got nan"),
    ("_random_uniform", lambda: nd.random_uniform(shape="(2"), r"parameter 'shape' must be a tuple of ints, got '\(2'"),
    ("_random_uniform", lambda: nd.random_uniform(shape=(1.5,)), "parameter 'shape'"),
    ("_random_uniform", lambda: nd.random_uniform(shape=2, dtype="int32"), "float16, float32 or float64, got int32"),
    ("_random_uniform", lambda: nd.random_uniform(shape=2, dtype="no"), "unknown dtype 'no'"),
    (
        "_random_uniform",
        lambda: nd.random_uniform(shape=2, upper=3),
        "no parameter 'upper'.*low, high, shape, ctx, dtype",
    ),
    ("_random_uniform", lambda: nd.random_uniform(), "the shape is unknown"),
    (
        "_random_uniform",
        lambda: nd.random_uniform(shape=3, out=nd.zeros((2,))),
        r"out has shape \(2,\), the result \(3,\)",
    ),
    ("_random_normal", lambda: nd.random_normal(0, 0, shape=2), "scale must be above 0, got 0.0"),
    ("_random_normal_like", lambda: nd.random.normal_like(A(1), scale=-1), "scale must be above 0, got -1.0"),
    ("_random_exponential", lambda: nd.random_exponential(0, shape=2), "lam must be above 0, got 0.0"),
    ("_random_gamma", lambda: nd.random_gamma(0, 1, shape=2), "alpha must be above 0 and finite, got 0.0"),
    ("_random_gamma", lambda: nd.random_gamma(1, -2, shape=2), "beta must be above 0, got -2.0"),
    ("_random_poisson", lambda: nd.random_poisson(-1, shape=2), "lam must be 0 or more and finite, got -1.0"),
    (
        "_random_negative_binomial",
        lambda: nd.random_negative_binomial(1.5, 0.5, shape=2),
        "parameter 'k' must be int, got 1.5",
    ),
    (
        "_random_negative_binomial",
        lambda: nd.random_negative_binomial(-1, 0.5, shape=2),
        "k must be 0 or more and finite, got -1",
    ),
    (
        "_random_negative_binomial",
        lambda: nd.random_negative_binomial(1, 0, shape=2),
        "p must be above 0 and at most 1, got 0.0",
    ),
    (
        "_random_negative_binomial_like",
        lambda: nd.random.negative_binomial_like(A(1), k=1, p=1.5),
        "p must be above 0 and at most 1, got 1.5",
    ),
    (
        "_random_generalized_negative_binomial",
        lambda: nd.random_generalized_negative_binomial(-1, 1, shape=2),
        "mu must be 0 or more and finite, got -1.0",
    ),
    (
        "_random_generalized_negative_binomial",
        lambda: nd.random_generalized_negative_binomial(1, -1, shape=2),
        "alpha must be 0 or more",
    ),
    *[
        (
            "_random_uniform",
            lambda low=low, high=high: nd.random_uniform(low, high, shape=2),
            "(low|high) must be a finite number, got -?inf",
        )
        for low, high in ((0, INF), (-INF, 0), (-INF, INF))
    ],
    ("_random_gamma", lambda: nd.random_gamma(INF, 1, shape=2), "alpha must be above 0 and finite, got inf"),
    ("_random_gamma_like", lambda: nd.random.gamma_like(A(1), alpha=INF), "alpha must be above 0 and finite, got inf"),
    ("_random_poisson", lambda: nd.random_poisson(INF, shape=2), "lam must be 0 or more and finite, got inf"),
    (
        "_random_generalized_negative_binomial",
        lambda: nd.random_generalized_negative_binomial(1, INF, shape=2),
        "alpha must be 0 or more and finite, got inf",
    ),
    (
        "_sample_gamma",
        lambda: nd.sample_gamma(A(1, INF), A(1, 1)),
        r"alpha must be above 0 and finite, got inf \(element 1\)",
    ),
    ("_sample_poisson", lambda: nd.sample_poisson(A(INF)), "lam must be 0 or more and finite, got inf"),
    (
        "_sample_negative_binomial",
        lambda: nd.sample_negative_binomial(A(INF), A(0.5)),
        "k must be 0 or more and finite, got inf",
    ),
    ("_random_randint", lambda: nd.random_randint(5, 5, shape=2), "high must be above low, got low 5 and high 5"),
    ("_random_randint", lambda: nd.random_randint(0, shape=2), "needs parameter 'high'"),
    ("_random_randint", lambda: nd.random_randint(0.5, 5, shape=2), "parameter 'low' must be int, got 0.5"),
    ("_random_randint", lambda: nd.random_randint(0, 5, shape=2, dtype="float32"), "int32 or int64, got float32"),
    (
        "_random_randint",
        lambda: nd.random_randint(0, 2**31 + 1, shape=2),
        "int32 holds -2147483648 to 2147483647, got low 0 and high 2147483649",
    ),
    ("_random_randint", lambda: nd.random_randint(-1, 9, shape=2, dtype="uint8"), "uint8 holds 0 to 255, got low -1"),
    ("_random_uniform_like", lambda: nd.random.uniform_like(), "needs input 'data'"),
    ("_random_uniform_like", lambda: nd.random.uniform_like(3), "data"),
    ("_sample_uniform", lambda: nd.sample_uniform(A(0, 1)), "needs input 'high'"),
    ("_sample_uniform", lambda: nd.sample_uniform(A(0, 1), A(1, 2), A(1)), "takes 2 input"),
    ("_sample_uniform", lambda: nd.sample_uniform(A(0, 1), A(1, 2, 3)), r"high is \(3,\) where \(2,\) is expected"),
    (
        "_sample_uniform",
        lambda: nd.sample_uniform(A(0, 1), A(1, 2, dtype="float64")),
        "high is float64 where float32 is expected",
    ),
    ("_sample_poisson", lambda: nd.sample_poisson(A(1), dtype="int32"), "float16, float32 or float64, got int32"),
    ("_sample_gamma", lambda: nd.sample_gamma(A(1), A(1), shape="x"), "parameter 'shape'"),
    (
        "_sample_multinomial",
        lambda: nd.sample_multinomial(A(1, 2, dtype="int32")),
        "data must be float16, float32 or float64, got int32",
    ),
    (
        "_sample_multinomial",
        lambda: nd.sample_multinomial(A(1, 2), dtype="bool"),
        "parameter 'dtype' must be one of the dtypes uint8, .*, float64; got bool",
    ),
    ("_sample_multinomial", lambda: nd.sample_multinomial(A(1, 2), dtype="int8"), "got int8"),
    ("_sample_multinomial", lambda: nd.sample_multinomial(nd.empty((2, 0))), "a probability at least"),
    *[
        (
            "_sample_multinomial",
            lambda row=row: nd.sample_multinomial(A([1, 1], row)),
            f"0 or more.*finite sum above 0, got {least} as the least and .* of row 1",
        )
        for row, least in (([float("nan"), 1], "nan"), ([-1, 3], "-1.0"), ([0, 0], "0.0"), ([1, float("inf")], "1.0"))
    ],
    ("_sample_normal", lambda: nd.sample_normal(A(0), A(-1)), "sigma must be 0 or more, got -1.0"),
    (
        "_sample_normal",
        lambda: nd.sample_normal(A(0, float("nan")), A(1, 1)),
        r"mu must be a number, got nan \(element 1\)",
    ),
    (
        "_sample_uniform",
        lambda: nd.sample_uniform(A(0, 3), A(1, -1)),
        r"low must not be above high, got low and high 3.0 and -1.0 \(element 1\)",
    ),
    ("_sample_exponential", lambda: nd.sample_exponential(A(1, 0)), "lam must be above 0, got 0.0"),
    ("_sample_gamma", lambda: nd.sample_gamma(A(1, -1), A(1, 1)), "alpha must be above 0 and finite, got -1.0"),
    ("_sample_poisson", lambda: nd.sample_poisson(A(-1)), "lam must be 0 or more and finite, got -1.0"),
    (
        "_sample_negative_binomial",
        lambda: nd.sample_negative_binomial(A(1), A(1.5)),
        "p must be above 0 and at most 1, got 1.5",
    ),
    (
        "_sample_generalized_negative_binomial",
        lambda: nd.sample_generalized_negative_binomial(A(1), A(-1)),
        "alpha must be 0 or more and finite, got -1.0",
    ),
    (
        "_sample_multinomial",
        lambda: nd.sample_multinomial(A(1), get_prob=2.5),
        "parameter 'get_prob' must be True or False, got 2.5",
    ),
    ("_shuffle", lambda: nd.shuffle(), "needs input 'data'"),
    ("_shuffle", lambda: nd.shuffle(A(1), A(2), "name", 4), "takes at most 3 arguments"),
    (
        "_sample_unique_zipfian",
        lambda: nd._internal._sample_unique_zipfian(range_max=0, shape=(1, 1)),
        "'range_max' must be int >= 1, got 0",
    ),
    (
        "_sample_unique_zipfian",
        lambda: nd._internal._sample_unique_zipfian(range_max=3, shape=(3,)),
        r"\(rows, numbers per row\), got \(3,\)",
    ),
    (
        "_sample_unique_zipfian",
        lambda: nd._internal._sample_unique_zipfian(range_max=3, shape=(1, 4)),
        "4 different numbers .* range_max 3",
    ),
    ("_random_pdf_normal", lambda: nd.random_pdf_normal(A([0, 1]), A(0)), "needs input 'sigma'"),
    (
        "_random_pdf_normal",
        lambda: nd.random_pdf_normal(A([0, 1], [2, 3]), A(0, 1), A(1, 1, 1)),
        r"sigma is \(3,\) where \(2,\) is expected",
    ),
    (
        "_random_pdf_normal",
        lambda: nd.random_pdf_normal(A([0, 1], [2, 3]), A(0, 1, 2), A(1, 1, 1)),
        r"\(2, 2\), does not begin with .* \(3,\)",
    ),
    ("_random_pdf_normal", lambda: nd.random_pdf_normal(A(1), A([1]), A([1])), "does not begin with"),
    (
        "_random_pdf_poisson",
        lambda: nd.random_pdf_poisson(A(1, dtype="int32"), A(1, dtype="int32")),
        "float16, float32 or float64, got int32",
    ),
    (
        "_random_pdf_gamma",
        lambda: nd.random_pdf_gamma(A(1), A(1, dtype="float64"), A(1)),
        "alpha is float64 where float32 is expected",
    ),
    (
        "_random_pdf_gamma",
        lambda: nd.random_pdf_gamma(A(1), A(1), A(1), is_log="maybe"),
        "parameter 'is_log' must be True or False, got 'maybe'",
    ),
    ("_random_pdf_gamma", lambda: nd.random_pdf_gamma(A(1), A(1), A(1), log=True), "no parameter 'log'"),
    (
        "_random_pdf_dirichlet",
        lambda: nd.random_pdf_dirichlet(A(0.5, 0.5), A(1, 2, 3)),
        r"samples of shape \(2,\) do not fit alpha of shape \(3,\)",
    ),
    ("_random_pdf_dirichlet", lambda: nd.random_pdf_dirichlet(A(1, dtype="int32"), A(1, dtype="int32")), "got int32"),
]


@pytest.mark.parametrize("op, call, words", CALLS, ids=[f"{i}-{row[0]}" for i, row in enumerate(CALLS)])
def test_refused(op, call, words):
    text = refusal(call)
    assert re.search(words, text) and (op in text or op.removeprefix("_") in text), text


SYMBOLS = [
    (
        lambda x: sym.sample_uniform(x, sym.Variable("high"), name="n"),
        {"x": (2,), "high": (3,)},
        "_sample_uniform.*expected",
    ),
    (
        lambda x: sym.random_pdf_normal(x, sym.Variable("mu"), sym.Variable("s"), name="n"),
        {"x": (2, 3), "mu": (3,)},
        "does not begin with",
    ),
    (lambda x: sym.random_pdf_dirichlet(x, sym.Variable("a"), name="n"), {"x": (2, 3), "a": (4,)}, "do not fit alpha"),
    (lambda x: sym.sample_multinomial(x, name="n"), {"x": (2, 0)}, "a probability at least"),
]


@pytest.mark.parametrize("make, shapes, words", SYMBOLS)
def test_refused_at_inference(make, shapes, words):
    with mx.util.np_shape(True), pytest.raises(mx.MXNetError, match=words):
        make(sym.Variable("x")).infer_shape(**shapes)


def test_dtypes_refused_at_inference():
    for s in (
        sym.random_pdf_poisson(sym.Variable("x"), sym.Variable("lam")),
        sym.sample_multinomial(sym.Variable("x")),
    ):
        with pytest.raises(mx.MXNetError, match="float16, float32 or float64, got int32"):
            s.infer_type(x="int32")
