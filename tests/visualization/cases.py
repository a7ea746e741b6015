"""Graphs, and what both libraries say of them: tables and graphviz's text."""

import contextlib
import io


def net(mx):
    """Layers of all styles, one input, and no parameters that MXNet's table counts wrongly."""
    s = mx.sym
    x = s.Variable("data")
    x = s.Convolution(x, kernel=(5, 5), num_filter=20, name="c1")
    x = s.BatchNorm(x, name="bn1")
    x = s.Activation(x, act_type="tanh", name="t1")
    x = s.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2), name="p1")
    x = s.LeakyReLU(x, name="lr")
    x = s.Convolution(
        x,
        kernel=(3, 3),
        stride=(1, 2),
        num_filter=8,
        num_group=2,
        no_bias=True,
        name="a_name_that_is_wider_than_the_column_of_the_table_for_it",
    )
    x = s.Pooling(x, pool_type="avg", global_pool=True, kernel=(1, 1), name="p2")
    a = s.FullyConnected(s.Flatten(x, name="fl"), num_hidden=10, no_bias=True, name="fc1")
    b = s.FullyConnected(a, num_hidden=10, name="fc2")
    x = s.Concat(a, s._internal._plus_scalar(b, scalar=1, name="plus"), dim=1, name="cc")
    x = s.Reshape(x, shape=(-1, 20), name="rs")
    x = s.Dropout(x, name="dr")
    x = s.Embedding(x, input_dim=10, output_dim=3, name="em")
    return s.SoftmaxOutput(x, name="softmax")


def split(mx):
    """Outputs of a node of several."""
    a, b = mx.sym.split(mx.sym.Variable("d"), num_outputs=2, name="sp")
    return mx.sym.elemwise_add(a, b, name="sum")


def odd_names(mx):
    """Names that graphviz must quote."""
    return mx.sym.exp(mx.sym.Variable("data"), name='x y/z"q')


def custom(mx):
    """An operator of one's own, and pooling without a kernel."""

    @mx.operator.register("drawn_custom")
    class Prop(mx.operator.CustomOpProp):
        pass

    return mx.sym.Pooling(
        mx.sym.Custom(mx.sym.Variable("x"), op_type="drawn_custom", name="own"),
        global_pool=True,
        pool_type="avg",
        name="pool",
    )


def twice(mx):
    """A value read twice, and a table whose first variable is a weight."""
    w = mx.sym.Variable("w_weight")
    t = mx.sym.tanh(w, name="t")
    return mx.sym.FullyConnected(mx.sym.elemwise_mul(t, t, name="square"), num_hidden=2, name="fc")


TABLES = {
    "net": (net, {"shape": {"data": (2, 1, 28, 28)}}),
    "narrow": (net, {"shape": {"data": (2, 1, 28, 28)}, "line_length": 80, "positions": [0.3, 0.6, 0.8, 1.0]}),
    "characters": (net, {"shape": {"data": (2, 1, 28, 28)}, "positions": [30, 60, 80, 100]}),
    "split": (split, {"shape": {"d": (2, 4, 5)}}),
    "no shapes": (net, {}),
    "twice": (twice, {"shape": {"w_weight": (2, 3)}}),
}
PLOTS = {
    "net": (net, {"shape": {"data": (2, 1, 28, 28)}}),
    "unknown": (
        net,
        {
            "title": "net",
            "save_format": "svg",
            "hide_weights": False,
            "node_attrs": {"shape": "oval", "fixedsize": "false"},
        },
    ),
    "types": (net, {"shape": {"data": (2, 1, 28, 28)}, "dtype": {"data": "float64"}}),
    "split": (split, {"shape": {"d": (2, 4, 5)}}),
    "types alone": (net, {"dtype": {"data": "float32"}}),
    "custom": (custom, {"node_attrs": {"shape": "diamond"}}),
    "odd names": (odd_names, {"title": "a b"}),
}


def table(mx, name):
    """The table as text."""
    make, keywords = TABLES[name]
    with contextlib.redirect_stdout(io.StringIO()) as told:
        mx.viz.print_summary(make(mx), **keywords)
    return told.getvalue()


def plot(mx, name):
    """Graphviz's text."""
    make, keywords = PLOTS[name]
    return mx.viz.plot_network(make(mx), **keywords).source
