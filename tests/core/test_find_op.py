"""Operators by their names, as a plugin looks them up."""

import pydoc

import pytest

import mxcore as mx
from mxcore.plugin import Device, Float, Int, Op, find_op, op, operators


def test_an_operator_tells_what_kernels_and_passes_need():
    dense = find_op("FullyConnected")
    assert isinstance(dense, Op) and find_op("ctc_loss") is find_op("CTCLoss")
    p = dense.parse({"num_hidden": "8", "no_bias": True})
    assert p.num_hidden == 8 and dense.signature(p).inputs == ("data", "weight")
    assert dense.facet("bias", p, 2) == 1 and dense.facet("helpers") is None
    assert all(s.params for s in dense.samples)
    data = mx.nd.ones((2, 3))
    assert dense(data, mx.nd.ones((8, 3)), num_hidden=8, no_bias=True).shape == (2, 8)


def test_an_unknown_name():
    with pytest.raises(KeyError, match="no operator is named 'rellu', did you mean 'relu'"):
        find_op("rellu")


def test_all_operators_stand_once_by_their_first_name():
    found = operators()
    names = [o.name for o in found]
    assert names == sorted({*names}) and len(names) > 400 and "relu" in names and "ctc_loss" not in names
    assert all(find_op(n) is o for n, o in zip(names, found))


def test_plugins_appear_and_go(plug):
    plug(mxcore_ops=[op("seen_here", "seen_too")(lambda k, p, data: data)])
    assert find_op("seen_too").name == "seen_here" and find_op("seen_here") in operators()


@pytest.mark.parametrize(
    "name, helpers",
    [
        ("RNN", {"layout", "limits", "dropout", "check_lengths"}),
        ("_histogram", {"even_edges"}),
        ("CTCLoss", {"read_labels"}),
        ("_contrib_hawkesll", {"check_events"}),
        ("_random_gamma", {"check"}),
        ("_random_gamma_like", {"check"}),
        ("_sample_gamma", {"check"}),
    ],
)
def test_what_stock_operators_share_with_kernels(name, helpers):
    assert {*vars(find_op(name).facet("helpers"))} == helpers


def test_a_signature_shows_inputs_and_outputs():
    dense = find_op("FullyConnected")
    assert repr(dense.signature(dense.parse({"num_hidden": 8}))) == "<Signature (data, weight, bias) -> (output)>"


def test_help_lists_each_parameter_once(plug):
    @op("test_help", width=Float(1.0), depth=Int(3))
    def helped(k, p, data):
        """Return data.

        Parameters
        ----------
        data : array
        width : float
            How wide.
        """
        return data

    plug(mxcore_ops=[helped])
    text = mx.nd.test_help.__doc__
    assert "\n\nParameters\n----------\ndata : array\nwidth : float\n    How wide." in text
    assert text.count("width : ") == 1 and text.endswith("depth : int, default 3")
    assert "ndarray(shape" not in pydoc.render_doc(Device)
