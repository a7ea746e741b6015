"""Every operator refuses a wrong number of inputs, what is no array, and bad parameters of every kind."""

import numpy as np
import pytest

from mxcore.testing.catalogue import stock_operators

from .bad_input import BOTH, check_refused, eager, first, inferred, wrong_parameters

OPS = {op.name: op for _, op in stock_operators() if op.samples}
EVERY = pytest.mark.parametrize("name", OPS)


@EVERY
def test_inputs(name):
    op = OPS[name]
    arrays, params = first(op)
    if arrays:  # a symbol makes variables of missing inputs, as in MXNet
        check_refused(
            eager,
            op,
            arrays[:-1],
            params,
            *() if op.variadic and not op.arg_names else [op.parse(dict(params))._sig.inputs[-1]],
        )
    for call in (eager, inferred):
        check_refused(call, op, [*arrays, np.ones((2, 3), np.float32)], params)
    for foreign in (1.5, "x", [1.0]) if arrays else ():
        check_refused(eager, op, [foreign, *arrays[1:]], params, kind=TypeError)


@BOTH
@EVERY
def test_parameters(name, call):
    op = OPS[name]
    arrays, params = first(op)
    for wrong, words, kind in wrong_parameters(op, params):
        check_refused(call, op, arrays, wrong, *words, kind=kind)
