"""What the tests of bad input share: a use to depart from, two ways to make it, and what the error must say."""

import re

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.parameters import Bool, DType, Enum, Float, Floats, Int, Shape
from mxcore.testing.catalogue import stock_operators

#: What no parameter of a kind takes, and words for what it does.
WRONG = {
    Int: ("abc", "int"),
    Float: ("abc", "float"),
    Bool: ("perhaps", "True or False"),
    Shape: ("abc", "tuple of ints"),
    Floats: ("abc", "tuple of floats"),
    Enum: ("abc", "one of"),
    DType: ("float31", "float32"),
}


def operators(names):
    """Name -> operator, of the families with these names."""
    return {op.name: op for family, op in stock_operators() if family in names.split()}


def first(op):
    """(arrays, parameters) of an operator's first sample."""
    arrays, params = op.samples[0].arrays("float32"), dict(op.samples[0].params)
    if op.variadic and not op.arg_names:
        params.setdefault(op.count, len(arrays))
    return arrays, params


def eager(op, arrays, params):
    """Run an operator on arrays."""
    return op(*[mx.nd.array(a, dtype=a.dtype) if isinstance(a, np.ndarray) else a for a in arrays], **params)


def inferred(op, arrays, params):
    """Infer an operator's shapes and dtypes in a symbol."""
    names = [f"x{i}" for i in range(len(arrays))]
    y = mx.sym.compose(op.name, [mx.sym.Variable(n) for n in names], {**params, "name": "node"}, op)
    with mx.util.np_shape(True):
        y.infer_shape(**{n: a.shape for n, a in zip(names, arrays)})
    y.infer_type(**{n: a.dtype for n, a in zip(names, arrays)})


BOTH = pytest.mark.parametrize("call", [eager, inferred], ids=["array", "symbol"])


def refusal(call, kind=MXNetError):
    """What a call says when it is refused, which it must be."""
    with pytest.raises(kind) as e:
        y = call()
        for part in y if isinstance(y, (list, tuple)) else [y]:
            if isinstance(part, mx.nd.NDArray):
                part.wait_to_read()
    assert isinstance(e.value, MXNetError), repr(e.value)
    return str(e.value)


def check_refused(call, op, arrays, params, *words, kind=MXNetError):
    """The call fails with an error that names the operator and holds the words, or what they match as patterns."""
    text = refusal(lambda: call(op, arrays, params), kind)
    missing = [w for w in (op.name, *words) if not (w.search(text) if isinstance(w, re.Pattern) else str(w) in text)]
    assert not missing, f"{missing} not in: {text}"


def wrong_parameters(op, params):
    """Parameters of which one is wrong, with words of the error and its kind."""
    if op.params and op.parser.rest is None:  # operators without any take, and ignore, what they are given
        yield {**params, "no_such": 1}, ["has no parameter 'no_such'"], TypeError
    for n, spec in op.params.items():
        kind = next((k for k in type(spec).__mro__ if k in WRONG), None)
        if kind is None:
            continue
        value, allowed = WRONG[kind]
        yield {**params, n: value}, [f"'{n}'", value, allowed], MXNetError
        yield {**params, n: object()}, [f"'{n}'"], MXNetError
        if kind is Int:
            for value in (1.5, True):
                yield {**params, n: value}, [f"parameter '{n}' must be int", f"got {value}"], TypeError
        if spec.required and not (op.variadic and n == op.count):  # which is counted for the caller
            yield {k: v for k, v in params.items() if k != n}, [f"needs parameter '{n}'"], TypeError
        if not spec.optional and kind is not DType:
            yield {**params, n: None}, [f"parameter '{n}' must be", "not None"], TypeError
        for bound, step in (("ge", -1), ("le", 1)):
            edge = getattr(spec, bound, None)
            if edge is not None:
                yield {**params, n: edge + step}, [f"parameter '{n}' must be", f"got {edge + step}"], ValueError
