"""Attributes of symbols and of variables, and scopes of them."""

import numpy as np
import pytest

import mxcore as mx
from mxcore.base import MXNetError

S = mx.sym


def test_variables_take_attributes():
    v = S.Variable(
        "v",
        attr={"mood": "x"},
        shape=(2, 0),
        lr_mult=2,
        wd_mult=0.5,
        dtype="float16",
        init=mx.init.Zero(),
        stype="csr",
        __k__=3,
    )
    assert v.list_attr() == {
        "mood": "x",
        "__shape__": "(2, 0)",
        "__lr_mult__": "2",
        "lr_mult": "2",
        "__wd_mult__": "0.5",
        "wd_mult": "0.5",
        "__dtype__": "2",
        "__init__": '["zero", {}]',
        "__storage_type__": "2",
        "__k__": "3",
    }
    assert v.attr("lr_mult") == v.attr("__lr_mult__") == "2" and v.attr("shape") is None
    assert S.var("v", init="xavier", profiler_scope="s:").list_attr() == {
        "__init__": "xavier",
        "__profiler_scope__": "s:",
        "profiler_scope": "s:",
    }


def test_variables_that_were_left_out_inherit_from_their_operator(fc):
    assert fc.attr_dict() == {
        "fc_weight": {"num_hidden": "3"},
        "fc_bias": {"num_hidden": "3"},
        "fc": {"num_hidden": "3"},
    }
    bn = S.BatchNorm(fc, name="bn", lr_mult=3)
    assert bn.attr_dict()["bn_moving_var"] == {"__lr_mult__": "3", "lr_mult": "3", "__init__": '["one", {}]'}


def test_a_state_learns_how_it_starts(a):
    mean, var = S.Variable("m"), S.Variable("v", init="zeros")
    S.BatchNorm(a, moving_mean=mean, moving_var=var)
    assert mean.attr("__init__") == '["zero", {}]' and var.attr("__init__") == "zeros"


def test_operators_take_attributes(a):
    f = S.FullyConnected(
        a, num_hidden=3, attr={"__data__": "k", "lr_mult": "7"}, lr_mult=9, __zz__="q", mirror_stage="1"
    )
    assert f.list_attr() == {
        "num_hidden": "3",
        "__data__": "k",
        "__lr_mult__": "7",
        "lr_mult": "7",
        "__zz__": "q",
        "__mirror_stage__": "1",
        "mirror_stage": "1",
    }
    assert S.FullyConnected(a, attr={"num_hidden": "4"}).attr("num_hidden") == "4"
    assert f.attr("nothing") is None


def test_scopes_nest_and_can_be_entered_again(a):
    outer = mx.AttrScope(ctx_group="one", __x__="1")
    with outer:
        with mx.AttrScope(ctx_group="two"):
            assert S.Variable("v").list_attr() == {"__ctx_group__": "two", "ctx_group": "two", "__x__": "1"}
        assert (a * 2).attr("ctx_group") == "one" and S.Variable("v", attr={"ctx_group": "own"}).attr(
            "__ctx_group__"
        ) == "own"
        with outer:
            assert mx.AttrScope.current.get({"__y__": "2"}) == {"ctx_group": "one", "__x__": "1", "__y__": "2"}
    assert S.Variable("v").list_attr() == {} and mx.AttrScope.current is mx.attribute.current()


def test_the_current_scope_can_be_set():
    before = mx.AttrScope.current
    mx.AttrScope.current = mx.AttrScope(ctx_group="set")
    assert S.Variable("v").attr("ctx_group") == "set"
    mx.AttrScope.current = before
    with pytest.raises(TypeError, match="must be an AttrScope, got str"):
        mx.AttrScope.current = "x"


def test_attributes_can_be_set_later(fc, a):
    fc._set_attr(lr_mult="8", num_hidden="5", __q__="1")
    assert fc.list_attr() == {"num_hidden": "5", "__lr_mult__": "8", "lr_mult": "8", "__q__": "1"}
    assert fc.infer_shape(data=(2, 4))[1] == [(2, 5)]
    a._set_attr(anything="1")
    assert a.list_attr() == {"anything": "1"}


def test_a_recursive_list_holds_all_nodes(fc):
    assert fc.list_attr(recursive=True) == {
        "fc_weight_num_hidden": "3",
        "fc_bias_num_hidden": "3",
        "fc_num_hidden": "3",
    }


def test_operators_keep_the_text_of_attributes_and_variables_take_texts_only():
    init = mx.init.One()
    conv = S.Convolution(S.var("d"), num_filter=2, kernel=(1, 1), attr={"__init__": init, "__n__": (1, 2)}, name="c")
    for node in ("c", "c_weight", "c_bias"):
        assert conv.attr_dict()[node]["__init__"] == str(init) and conv.attr_dict()[node]["__n__"] == "(1, 2)"
    assert S.load_json(conv.tojson()).attr_dict() == conv.attr_dict()
    assert S.relu(S.var("d"), attr={"lr_mult": 3}).attr("lr_mult") == "3"
    with pytest.raises(ValueError, match="attributes of symbols are strings, __init__="):
        S.var("d", attr={"__init__": init})


def test_the_text_of_an_initializer_is_none_that_a_module_can_read():
    conv = S.Convolution(S.var("d"), num_filter=2, kernel=(1, 1), attr={"__init__": mx.init.One()})
    module = mx.mod.Module(conv, data_names=["d"], label_names=None)
    module.bind([("d", (1, 2, 3, 3))])
    with pytest.raises(mx.MXNetError, match="initializer"):
        module.init_params()
    block = mx.gluon.SymbolBlock(conv, S.var("d"))  # which takes what it is told to initialize with
    block.initialize(mx.init.Constant(3))
    assert (block(mx.nd.ones((1, 2, 3, 3))).asnumpy() == 9).all()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda f: mx.AttrScope(x=1), "AttrScope: attributes are strings, x=1 is a int"),
        (lambda f: S.Variable("v", attr={"x": 1}), "attributes of symbols are strings, x=1"),
        (lambda f: S.Variable("v", attr=5), "attr must be a dict of strings, got 5"),
        (lambda f: S.Variable(3), "name must be a str, got int"),
        (lambda f: S.relu(S.Variable("x"), name=3.0), "operator relu: name must be a str, got 3.0"),
        (lambda f: S.Variable("v", foo="1"), "attribute 'foo' must begin and end with two underscores"),
        (lambda f: S.Variable("v", stype="dense"), "stype must be one of default, row_sparse, csr, got 'dense'"),
        (lambda f: S.FullyConnected(f, num_hidden=1, attr={"foo": "1"}), "FullyConnected takes no attribute 'foo'"),
        (
            lambda f: S.FullyConnected(f, num_hidden=1, attr={"weight_lr_mult": "1"}),
            r"for an input write weight=Variable\(..., lr_mult=...\)",
        ),
        (lambda f: f._set_attr(foo="1"), "FullyConnected takes no attribute 'foo'"),
        (lambda f: S.relu(f, attr={3: "x"}), "names of attributes are strings, 3 is a int"),
        (lambda f: f._set_attr(num_hidden=4), "attributes of symbols are strings, num_hidden=4"),
        (lambda f: f._set_attr(no_bias="True"), "takes 2 inputs, it has 3"),
        (lambda f: S.Group([f, S.Variable("v")])._set_attr(x="1"), "a group of several nodes"),
    ],
)
def test_wrong_attributes_are_explained(fc, call, text):
    with pytest.raises(MXNetError, match=text):
        call(fc)


class OfATable(mx.init.Initializer):
    def __init__(self, table):
        super().__init__(table=table)


@pytest.mark.parametrize(
    "init, says",
    [
        (mx.init.One, "must be an initializer such as .* got <class"),
        (mx.init.Load({"w": mx.nd.ones(1)}), "not one of several arrays"),
        (mx.init.Mixed([".*"], [mx.init.One()]), "not one of several arrays"),
        (3, "got 3"),
        (lambda *args: None, "got <function"),
        (OfATable(np.ones(2)), "a OfATable, has an argument that is no text: .*ndarray is not JSON"),
    ],
)
def test_what_is_no_initializer_of_a_variable_is_told_with_its_name(init, says):
    with pytest.raises(mx.base.MXNetError, match=f"Variable: init of 'weights',? .*{says}") as told:
        S.Variable("weights", init=init)
    assert isinstance(told.value, TypeError)
