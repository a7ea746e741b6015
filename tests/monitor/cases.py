"""A network watched by Monitor, in both libraries."""
import numpy as np

WAYS = {
    "plain": {"interval": 2},
    "sorted": {"interval": 1, "sort": True, "pattern": "fc|softmax"},
    "pattern": {"interval": 2, "pattern": ".*fc.*|.*output"},
}


def executor(mx):
    """Bound, with numbers."""
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc1")
    x = mx.sym.FullyConnected(mx.sym.Activation(x, act_type="relu", name="a1"), num_hidden=2, name="fc2")
    exe = mx.sym.SoftmaxOutput(x, name="softmax").simple_bind(mx.cpu(), data=(2, 4))
    rs = np.random.RandomState(0)
    for a in exe.arg_dict.values():
        a[:] = mx.nd.array(rs.uniform(-1, 1, a.shape))
    return exe


def reports(mx, way):
    """What `toc` gives, batch by batch, with the statistic as numbers."""
    exe, mon = executor(mx), mx.mon.Monitor(**WAYS[way])
    mon.install(exe)
    found = []
    for _ in range(3):
        mon.tic()
        exe.forward(is_train=True)
        found.append([[n, name, float(text.rstrip("\t"))] for n, name, text in mon.toc()])
    return found
