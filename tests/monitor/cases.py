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


def convolutional(mx):
    """Operators with hidden outputs, with inputs that MXNet does not name, and with a value read twice."""
    s = mx.sym
    x = s.Convolution(s.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = s.BatchNorm(x, fix_gamma=False, name="bn")
    x = s.Activation(x, act_type="relu", name="relu")
    a, b = s.SliceChannel(x, num_outputs=2, name="parts")
    x = s.elemwise_mul(s.tanh(a, name="t"), a, name="product")
    x = s.elemwise_mul(x, s.LeakyReLU(b, name="leaky"), name="both")
    x = s.FullyConnected(s.Flatten(x, name="flat"), num_hidden=3, name="fc")
    return s.MakeLoss(s.mean(x, axis=1, name="m"), name="loss")


#: What `rows` runs: training with gradients, prediction, and with the inputs.
NAMES = {
    "training": dict(train=True, backward=True),
    "prediction": dict(train=False),
    "inputs": dict(train=True, monitor_all=True),
}


def rows(mx, train, backward=False, monitor_all=False):
    """Name and mean square root of all that an executor tells a monitor."""
    exe = convolutional(mx).simple_bind(mx.cpu(), data=(2, 2, 5, 5))
    rs = np.random.RandomState(0)
    for _, a in sorted(exe.arg_dict.items()):
        a[:] = mx.nd.array(rs.uniform(-1, 1, a.shape))
    exe.aux_dict["bn_moving_var"][:] = 2
    mon = mx.mon.Monitor(1, monitor_all=monitor_all)
    mon.install(exe)
    mon.tic()
    exe.forward(is_train=train)
    if backward:
        exe.backward()
    return [[name, float(text.rstrip("\t"))] for _, name, text in mon.toc()]
