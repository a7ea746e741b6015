import mxcore as mx
from mxcore import gluon


def test_a_symbol():
    net = mx.sym.tanh(mx.sym.Variable("x"), name="t").optimize_for("toy_graph_pass")
    assert net.bind(mx.cpu(), {"x": mx.nd.ones((1,))}).forward()[0].asscalar() == 0.5
    assert net.name == "t" and net.list_outputs() == ["t_output"]


def test_a_block_and_its_gradient():
    block = gluon.nn.HybridLambda("tanh")
    block.hybridize(backend="toy_graph_pass")
    x = mx.nd.ones((1,))
    x.attach_grad()
    with mx.autograd.record():
        y = block(x)
    y.backward()
    assert (y.asscalar(), x.grad.asscalar()) == (0.5, 0.25)


def test_other_graphs_are_left_alone():
    net = mx.sym.tanh(mx.sym.Variable("x"))
    assert net.bind(mx.cpu(), {"x": mx.nd.zeros((1,))}).forward()[0].asscalar() == 0
    assert abs(net.bind(mx.cpu(), {"x": mx.nd.ones((1,))}).forward()[0].asscalar() - 0.7616) < 1e-4
