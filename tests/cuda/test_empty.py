"""Arrays without elements: every case of the kernels with its gradients, by each length that may be none."""

import copy

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import infer
from mxcore.base import MXNetError
from mxcore.plugin import find_op
from mxcore.testing.ways import reference_bodies
from tests.marks import in_turn

from .test_kernels import CASES, close, computed, name_of, updates


def shape_of(how):
    return how if isinstance(how, tuple) else how.shape


def cut(how, length):
    """An input of which every axis of a length has none."""
    shape = tuple(0 if n == length else n for n in shape_of(how))
    if isinstance(how, tuple):
        return shape
    found = copy.copy(how)
    found.shape = shape
    return found


def emptied(case):
    """A case without one of its lengths, as often as the operator's rules take that."""
    op, inputs, params = case
    tried = []
    for length in sorted({n for how in inputs for n in shape_of(how)} - {0}):
        for some in ([cut(how, length) for how in inputs], [cut(inputs[0], length), *inputs[1:]]):
            shapes = [shape_of(how) for how in some]
            if shapes not in tried and allowed(op, some, params):
                tried.append(shapes)
                yield op, some, params


def allowed(op, inputs, params):
    if updates(op):
        return True
    found = find_op(op)
    counted = {"num_args": len(inputs)} if "num_args" in found.params else {}
    p = found.parse({**counted, **params})
    try:
        infer.op_shapes(found, p, [shape_of(how) for how in inputs])
    except MXNetError:
        return False
    return True


def outcome(case, ctx, dtype):
    """What is computed, or that it is refused."""
    try:
        return computed(case, ctx, dtype)
    except (ValueError, IndexError) as e:
        return e


def given(i):
    """What is tried of a case; of the last one, whose results are none though its arrays are something, itself."""
    return emptied(CASES[i]) if i < len(CASES) else [OTHER]


OTHER = "Deconvolution", [(1, 1, 1), (1, 1, 2)], {"kernel": (2,), "pad": (1,), "num_filter": 1}


def same(case, dtype):
    """Compare what kernels give with the reference bodies; both may refuse it."""
    found = outcome(case, mx.gpu(0), dtype)
    with reference_bodies(), np.errstate(all="ignore"):
        wanted = outcome(case, mx.cpu(), "float64")
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        assert type(found) is type(wanted), (case, found, wanted)
        return
    close(found, wanted, dtype)


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize(
    "i",
    [*range(0, len(CASES) + 1, 6), *in_turn(*(i for i in range(len(CASES) + 1) if i % 6))],
    ids=lambda i: name_of(i) if i < len(CASES) else OTHER[0],
)
def test_without_elements(gpus, i):
    for case in given(i):
        for dtype in ("float32", "float16"):
            same(case, dtype)


def test_no_operator_is_left_out():
    tried = {case[0] for i in range(len(CASES)) for case in given(i)}
    assert {op for op, *_ in CASES} - tried == {"_np_min"}  # which refuses to choose from nothing
