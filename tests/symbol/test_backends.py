"""optimize_for: graph passes of plugins by name."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError
from mxcore.plugin import Graph, GraphPass

S = mx.sym


def without(name):
    """A pass that takes operators out of the heads."""
    return lambda g: Graph([n.inputs[0] if n.op is not None and n.op.name == name else (n, i) for n, i in g.heads])


def test_a_pass_is_run_by_its_name(a, passes):
    passes(GraphPass("blunt", 100, without("tanh")), GraphPass("other", 50, lambda g: 1 / 0))
    s = S.tanh(a * 2, name="t")
    assert (
        s.optimize_for("blunt").list_outputs() == ["_mulscalar0_output"] == s.get_backend_symbol("blunt").list_outputs()
    )
    assert s.list_outputs() == ["t_output"]


def test_a_pass_sees_shapes_parameters_and_options(fc, passes):
    seen = {}

    def look(g):
        seen.update(
            g.info,
            shapes={n.name: g.shapes.get((n, 0)) for n in g.nodes},
            dtypes={n.name: g.dtypes.get((n, 0)) for n in g.nodes},
        )
        return g

    passes(GraphPass("look", 100, look))
    args = {"fc_weight": mx.nd.ones((3, 5))}
    fc.optimize_for(
        "look", args=args, ctx=mx.cpu(), shape_dict={"data": (2, 0)}, type_dict={"data": "float32"}, level=3
    )
    assert seen["shapes"] == {"data": (2, 5), "fc_weight": (3, 5), "fc_bias": (3,), "fc": (2, 3)}
    assert set(seen["dtypes"].values()) == {np.dtype("float32")}
    assert seen["args"] is args and seen["ctx"] == mx.cpu() and seen["options"] == {"level": 3}
    fc.optimize_for("look", args=[None, mx.nd.ones((3, 7)), None])
    assert seen["shapes"]["fc_weight"] == (3, 7) and seen["shapes"]["data"] is None
    fc.optimize_for("look", args=args, skip_infer=True)
    assert set(seen["shapes"].values()) == {None}


@pytest.mark.parametrize(
    "fn, kind, text",
    [
        (lambda g: 1 / 0, RuntimeError, "graph pass 'bad' of passing failed: ZeroDivisionError"),
        (lambda g: None, TypeError, "must return a Graph with heads, got None"),
        (lambda g: Graph([]), TypeError, "must return a Graph with heads"),
    ],
)
def test_a_bad_pass_is_named(a, passes, fn, kind, text):
    passes(GraphPass("bad", 100, fn))
    with pytest.raises(kind, match=text):
        a.optimize_for("bad")


def test_an_unknown_backend_lists_those_there_are(a, passes):
    with pytest.raises(MXNetError, match="no graph pass is named 'nope'; registered: none"):
        a.optimize_for("nope")
    passes(GraphPass("one", 100, lambda g: g), GraphPass("two", 200, lambda g: g))
    with pytest.raises(MXNetError, match="no graph pass is named 'on', did you mean 'one'.; registered: one, two"):
        a.get_backend_symbol("on")
