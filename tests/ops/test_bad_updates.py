"""Optimizer updates refuse bad input: the error names the operator, what was wrong, its value and what is allowed."""

import re

import numpy as np
import pytest

import mxcore as mx
from mxcore.parameters import Shape

from . import bad_input
from .bad_input import eager, first, operators

nd = mx.nd
OPS = operators("optimizer")


def use(name):
    """(operator, arrays, parameters) of the first sample of an operator."""
    return OPS[name], *first(OPS[name])


def refused(op, arrays, params, words):
    """The call is refused with an error that these words match."""
    bad_input.check_refused(eager, op, arrays, params, re.compile(words))


@pytest.mark.parametrize("name", OPS)
def test_inputs(name):
    op, arrays, params = use(name)
    refused(op, arrays[:-1], params, "needs input|inputs with|takes")
    refused(op, [*arrays, arrays[0]], params, "takes|inputs with")
    refused(op, [3.5, *arrays[1:]], params, "weight|lrs|data|array|arg")
    if name != "reset_arrays":  # which fills anything
        refused(
            op,
            [a.astype("int32") for a in arrays],
            params,
            "float16, float32 or float64, got int32|int32 where float32 is expected",
        )
        other = "float64" if arrays[1].dtype != np.float64 else "float32"
        refused(op, [arrays[0], arrays[1].astype(other), *arrays[2:]], params, f"{other} where .* is expected|expected")
    if name not in ("reset_arrays", "multi_sum_sq"):  # whose arrays are of any shapes
        refused(op, [arrays[0], np.zeros((9, 9, 9), arrays[1].dtype), *arrays[2:]], params, r"\(9, 9, 9\)")


@pytest.mark.parametrize("name", [n for n in OPS if "adamw" in n])
def test_a_factor_must_be_there(name):
    """Kernels left the step out where the array was empty, bodies failed."""
    op, arrays, params = use(name)
    refused(
        op, [*arrays[:-1], arrays[-1][:0]], params, r"rescale_grad must hold a number, got an array of shape \(0,\)"
    )


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if any(isinstance(s, Shape) for s in op.params.values())])
def test_rates_must_be_as_many_as_weights(name):
    op, arrays, params = use(name)
    for parameter in [n for n, s in op.params.items() if isinstance(s, Shape)]:
        for wrong in ((), (1,), (1, 2, 3)):
            # Also after a good call, whose plan these calls share.
            refused(op, arrays, {**params, parameter: wrong}, f"{parameter} must hold 2 numbers.* got {len(wrong)}")
            eager(op, arrays, params)


@pytest.mark.parametrize(
    "name, parameter, value, words",
    [
        ("ftml_update", "beta1", -0.5, "float between 0 and 1, got -0.5"),
        ("ftml_update", "beta2", 1.5, "float between 0 and 1, got 1.5"),
        ("multi_sgd_update", "num_weights", 0, "int between 1 and .*, got 0"),
        ("multi_sum_sq", "num_arrays", -1, "int between [01] and .*, got -1"),
        ("_multi_lamb_update", "num_tensors", 0, "int between 1 and .*, got 0"),
        ("sgd_update", "lazy_update", "2", "True or False, got '2'"),
        ("ftml_update", "t", 0, "int >= 1, got 0"),
        ("lamb_update_phase1", "t", 0, "int >= 1, got 0"),
        ("mp_lamb_update_phase1", "t", -1, "int >= 1, got -1"),
        ("_multi_lamb_update", "step_count", (1, 0), "int >= 1, got 0"),
    ],
)
def test_out_of_range(name, parameter, value, words):
    op, arrays, params = use(name)
    refused(op, arrays, {**params, parameter: value}, f"'{parameter}' must be {words}")


def test_more_weights_than_arrays():
    x = nd.ones((2,))
    with pytest.raises(mx.MXNetError, match="multi_sgd_update needs input 'grad_1'"):
        nd.multi_sgd_update(x, x, x, lrs=(1, 1), wds=(0, 0), num_weights=2)
    with pytest.raises(mx.MXNetError, match="multi_sum_sq takes 1 inputs"):
        nd.multi_sum_sq(x, x, num_arrays=1)


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("sgd_mom_update", {"x0": (2, 3), "x1": (3, 2)}),
        ("lamb_update_phase2", {"x0": (2, 3), "x2": (2,)}),
        ("multi_lars", {"x0": (2,), "x1": (3,)}),
        ("multi_sgd_update", {"x0": (2,), "x1": (3,)}),
        ("_adamw_update", {"x0": (2, 3), "x3": (2,)}),
    ],
)
def test_shapes_refused_at_inference(name, shapes):
    op, arrays, params = use(name)
    s = mx.sym.compose(op.name, [mx.sym.Variable(f"x{i}") for i in range(len(arrays))], {**params, "name": "node"}, op)
    with pytest.raises(mx.MXNetError, match="node.*(expected|inconsistent)"):
        s.infer_shape(**shapes)
