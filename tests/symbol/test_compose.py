"""Symbols over symbols: composition, names, groups, outputs, parts."""

import copy
import pickle
import threading

import pytest

import mxcore as mx
from mxcore.base import MXNetError

S = mx.sym


@pytest.fixture
def tail():
    return S.FullyConnected(S.Variable("data2"), num_hidden=2, name="tail")


def test_inputs_that_are_left_out_become_variables(a, b):
    assert S.FullyConnected(a + b, num_hidden=2, name="fc").list_arguments() == ["a", "b", "fc_weight", "fc_bias"]
    assert S.FullyConnected(a, weight=b, no_bias=True, num_hidden=2).list_arguments() == ["a", "b"]
    bn = S.BatchNorm(a, name="bn")
    assert bn.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"] and bn.list_arguments() == [
        "a",
        "bn_gamma",
        "bn_beta",
    ]
    assert bn.list_inputs() == [*bn.list_arguments(), *bn.list_auxiliary_states()] == bn.get_inputs().list_outputs()
    assert S.sgd_mom_update(a, b, S.Variable("m"), lr=1.0).list_auxiliary_states() == ["m"]


def test_a_call_replaces_free_variables_in_a_copy(fc, tail):
    made = tail(data2=fc, name="made")
    assert made.list_outputs() == ["made_output"] and made.list_arguments() == [
        "data",
        "fc_weight",
        "fc_bias",
        "tail_weight",
        "tail_bias",
    ]
    assert tail.list_outputs() == ["tail_output"] and tail.list_arguments() == ["data2", "tail_weight", "tail_bias"]
    assert tail(fc).list_arguments() == made.list_arguments()
    assert tail(fc, S.Variable("w")).list_arguments() == ["data", "fc_weight", "fc_bias", "w", "tail_bias"]
    assert tail(data2=fc, tail_weight=S.Variable("w")).list_arguments() == [
        "data",
        "fc_weight",
        "fc_bias",
        "w",
        "tail_bias",
    ]
    assert made(data=S.Variable("x")).list_arguments()[0] == "x"  # deep below
    assert S.Variable("p")(p=fc).list_outputs() == ["fc_output"]


def test_compose_in_place(fc, tail):
    tail._compose(data2=fc, name="made")
    assert tail.list_outputs() == ["made_output"] and tail.list_arguments()[:2] == ["data", "fc_weight"]


def test_a_group_is_composed_as_one(fc, tail, a):
    both = S.Group([fc, fc + 1, tail])(data=a, name="first")
    assert both.list_outputs() == ["first_output", "_plusscalar0_output", "tail_output"]
    assert both.list_arguments() == ["a", "fc_weight", "fc_bias", "data2", "tail_weight", "tail_bias"]


def test_copies_share_weights_and_nothing_else(fc, a, b):
    twice = S.Group([fc(data=a), fc(data=b)])
    assert twice.list_arguments() == ["a", "fc_weight", "fc_bias", "b"]
    ones = {
        "a": mx.nd.ones((1, 2)),
        "b": mx.nd.ones((1, 2)) * 2,
        "fc_weight": mx.nd.ones((3, 2)),
        "fc_bias": mx.nd.zeros((3,)),
    }
    assert [y.asnumpy().tolist() for y in twice.eval(**ones)] == [[[2, 2, 2]], [[4, 4, 4]]]
    fc(data=a)._set_attr(__x__="1")
    assert "__x__" not in fc.list_attr()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_are_apart(fc, copied):
    other = copied(fc)
    assert other.tojson() == fc.tojson()
    other._set_attr(num_hidden="7")
    other.get_internals()["fc_weight"]._set_attr(lr_mult="2")
    assert fc.attr("num_hidden") == "3" and "lr_mult" not in fc.attr_dict()["fc_weight"]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda s, x: s(nope=x), "no argument is named 'nope'.*there are: data2, tail_weight, tail_bias"),
        (lambda s, x: s(dta2=x), "did you mean 'data2'"),
        (lambda s, x: s(x, x, x, x), "got 4 symbols, there are 3 arguments"),
        (lambda s, x: s(x, data2=x), "by position or by name, not both"),
        (lambda s, x: s(data2=3), "data2 must be a Symbol, got int"),
        (lambda s, x: s(data2=S.Group([x, x])), r"data2 has 2 outputs \['a', 'a'\]; choose one"),
        (
            lambda s, x: S.BatchNorm(x, name="bn")(bn_moving_mean=x + 1),
            "'bn_moving_mean' is written by operator BatchNorm 'bn'; only a Variable",
        ),
        (
            lambda s, x: S.BatchNorm(x, moving_mean=x + 1),
            "operator BatchNorm writes its input 'moving_mean', which must be a Variable",
        ),
        (
            lambda s, x: S.FullyConnected(x, S.split(x, num_outputs=2), num_hidden=1),
            "input 'weight' must have one output, it has 2",
        ),
        (lambda s, x: x + S.Group([x, x]), "input 'rhs' must have one output"),
        (lambda s, x: S.Group([x, 1]), r"Group takes a list of one or more Symbols, got \['Symbol', 'int'\]"),
        (lambda s, x: S.Group([]), "Group takes a list"),
        (lambda s, x: S.FullyConnected(x, num_hidden=1, nope=1), "FullyConnected has no parameter 'nope'"),
    ],
)
def test_wrong_compositions_are_explained(tail, a, call, text):
    with pytest.raises(MXNetError, match=text):
        call(tail, a)


def test_outputs_by_index_name_and_slice(a, b):
    s = S.split(a, num_outputs=3, name="s")
    assert len(s) == s.num_outputs == 3 and s.name == "s" and repr(s) == "<Symbol s>"
    assert [y.list_outputs() for y in s] == [["s_output0"], ["s_output1"], ["s_output2"]]
    assert s[1:].list_outputs() == ["s_output1", "s_output2"] and s[-1].list_outputs() == s[
        "s_output2"
    ].list_outputs() == ["s_output2"]
    pair = S.Group([a, b])
    assert pair.name is None and repr(pair) == "<Symbol group [a, b]>" and S.Group([a, a]).name == "a"
    for key, kind, text in (
        (3, IndexError, "output 3 does not exist"),
        ("s_output", ValueError, "did you mean"),
        (1.5, TypeError, "got float"),
        (slice(5, 9), IndexError, "are none"),
    ):
        with pytest.raises(kind, match=text):
            s[key]
    with pytest.raises(ValueError, match="2 outputs are named 'a'"):
        S.Group([a, a])["a"]


def test_internals_and_children(a):
    net = S.BatchNorm(S.split(a, num_outputs=2, name="s")[0], name="bn")
    assert net.get_internals().list_outputs() == [
        "a",
        "s_output0",
        "s_output1",
        "bn_gamma",
        "bn_beta",
        "bn_moving_mean",
        "bn_moving_var",
        "bn_output",
    ]
    assert net.get_internals()["s_output1"].list_arguments() == ["a"]
    assert net.get_children().list_outputs() == ["s_output0", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
    assert (
        a.get_children() is None
        and S.Group([net, a]).get_children().list_outputs() == net.get_children().list_outputs()
    )


def test_automatic_names(a, b):
    made = [
        a + 1,
        1 + a,
        a + b,
        2**a,
        S.pow(2, a),
        -a,
        S.Concat(a, b),
        S.concat(a, b),
        a.swapaxes(0, 1),
        a.astype("int32"),
        S.FullyConnected(a, num_hidden=1),
    ]
    assert [s.name for s in made] == [
        "_plusscalar0",
        "_plusscalar1",
        "_plus0",
        "_rpower_scalar0",
        "_rpowerscalar0",
        "_mulscalar0",
        "concat0",
        "concat1",
        "swapaxes0",
        "cast0",
        "fullyconnected0",
    ]
    with mx.name.NameManager():
        assert (a + 1).name == "_plusscalar0"
    assert (a + 1).name == "_plusscalar2"


def test_prefixes(a):
    with mx.name.Prefix("p_"):
        assert (a + 1).name == "p__plusscalar0"
        assert S.FullyConnected(a, num_hidden=1, name="x").list_arguments() == ["a", "p_x_weight", "p_x_bias"]
        with mx.name.Prefix("q_"):
            assert (a + 1).name == "q__plusscalar0"
        assert (a + 1).name == "p__plusscalar1" and S.Variable("v").name == "v"


def test_the_current_manager_can_be_set(a):
    before = mx.name.NameManager.current
    mx.name.NameManager.current = mx.name.Prefix("set_")
    assert (a + 1).name == "set__plusscalar0" and mx.name.Prefix.current is mx.name.current()
    mx.name.NameManager.current = before
    with pytest.raises(TypeError, match="must be a NameManager, got int"):
        mx.name.NameManager.current = 3


def test_names_and_attributes_belong_to_threads(a):
    found = []

    def work():
        found.append(((a + 1).name, S.Variable("v").list_attr()))

    with mx.name.Prefix("here_"), mx.AttrScope(ctx_group="here"):
        t = threading.Thread(target=work)
        t.start()
        t.join()
        assert S.Variable("v").attr("ctx_group") == "here"
    assert found == [("_plusscalar0", {})]


def test_an_operator_is_taken_out_of_a_graph():
    fc = mx.sym.FullyConnected(mx.sym.Variable("x"), num_hidden=3, name="fc", attr={"__mood__": "good"})
    alone = fc._gen_atomic_symbol()
    again = alone(data=mx.sym.Variable("q"), weight=mx.sym.Variable("w"), no_bias=True, name="new")
    assert (
        alone.list_arguments() == [] and again.list_arguments() == ["q", "w"] and again.list_outputs() == ["new_output"]
    )
    assert again.attr_dict()["new"] == {"num_hidden": "3", "no_bias": "True", "__mood__": "good"}
    assert (mx.sym.Variable("a") * 3)._gen_atomic_symbol()(mx.sym.Variable("b")).eval(b=mx.nd.ones(1))[
        0
    ].asscalar() == 3
    with pytest.raises(ValueError, match="is a variable"):
        mx.sym.Variable("v")._gen_atomic_symbol()


def test_operators_without_parameters_keep_what_they_ignore_as_attributes():
    with pytest.warns(UserWarning, match=r"^operator relu has no parameters; ignored: 'axis', 'shape'$") as told:
        y = S.relu(S.Variable("a"), axis=1, shape=(1, 2), name="r")
    assert len(told) == 1 and y.list_attr() == {"axis": "1", "shape": "(1, 2)"}
    assert S.load_json(y.tojson()).tojson() == y.tojson()
    with pytest.raises(mx.MXNetError, match="relu has no parameter 'x'"):
        S.relu(x=S.Variable("a"))  # an input by another name is no parameter
