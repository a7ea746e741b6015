"""Training steps of recurrent networks, written so that MXNet and mxcore run the same lines.

Run by an interpreter that has MXNet, it is MXNet's side of the comparison.
"""

from __future__ import annotations

from .peer import serve
from .training import step_of

#: Name -> (how it is run, mode, time steps, batch, inputs, units, layers, in both directions)
CASES = {
    "lstm": ("bound", "lstm", 35, 32, 200, 200, 2, False),
    "lstm, eager": ("eager", "lstm", 35, 32, 200, 200, 2, False),
    "lstm, unrolled cells": ("unrolled", "lstm", 35, 32, 200, 200, 2, False),
    "lstm, layer": ("layer", "lstm", 35, 32, 200, 200, 2, False),
    "lstm, hybridised cells": ("cells", "lstm", 35, 32, 200, 200, 2, False),
    "lstm, both directions": ("bound", "lstm", 35, 32, 200, 200, 2, True),
    "lstm, small": ("bound", "lstm", 10, 8, 64, 64, 2, False),
    "gru": ("bound", "gru", 35, 32, 200, 200, 2, False),
    "gru, layer": ("layer", "gru", 35, 32, 200, 200, 2, False),
    "rnn_tanh": ("bound", "rnn_tanh", 35, 32, 200, 200, 2, False),
}


def stepper(mx, case):
    """A step of training, forward, backward and ``sgd_update``, that waits for itself; and what it lowers."""
    how, mode, steps, batch, inputs, units, layers, both = CASES[case]
    mx.random.seed(0)
    runs = {"bound": _bound, "eager": _eager, "unrolled": _unrolled, "layer": _layer, "cells": _cells}
    return runs[how](mx, mode, (steps, batch, inputs), units, layers, both)


def _bound(mx, mode, shape, units, layers, both):
    names = ["weights", "state", "cell"][: 3 if mode == "lstm" else 2]
    inputs = [mx.sym.Variable(n) for n in names]
    net = mx.sym.RNN(
        mx.sym.Variable("data"), *inputs, state_size=units, num_layers=layers, bidirectional=both, mode=mode
    )
    return _trained(mx, net, shape, {"weights"})


def _unrolled(mx, mode, shape, units, layers, both):
    stack = mx.rnn.SequentialRNNCell()
    for i in range(layers):
        stack.add(mx.rnn.LSTMCell(units, prefix=f"l{i}_"))
    net, _ = stack.unroll(shape[0], mx.sym.Variable("data"), layout="TNC", merge_outputs=True)
    return _trained(mx, net, shape, set(net.list_arguments()) - {"data"})


def _trained(mx, net, shape, trained):
    req = {n: "write" if n in trained else "null" for n in net.list_arguments()}
    bound = net.simple_bind(mx.current_context(), grad_req=req, data=shape)
    for name, array in bound.arg_dict.items():
        array[:] = mx.nd.random.uniform(-0.1, 0.1, array.shape) if req[name] == "write" or name == "data" else 0
    head = mx.nd.random.uniform(-1, 1, bound.outputs[0].shape)
    pairs = [(bound.arg_dict[n], bound.grad_dict[n]) for n in sorted(trained)]

    def step():
        bound.forward(is_train=True)
        bound.backward([head])
        for weight, grad in pairs:
            mx.nd.sgd_update(weight, grad, out=weight, lr=0.001)
        mx.nd.waitall()

    return step, lambda: float((bound.outputs[0] * head).sum().asscalar())


def _eager(mx, mode, shape, units, layers, both):
    directions = 2 if both else 1
    data, weights = (
        mx.nd.random.uniform(-0.1, 0.1, shape),
        mx.nd.random.uniform(-0.1, 0.1, _size(shape[2], units, layers)),
    )
    states = [mx.nd.zeros((layers * directions, shape[1], units)) for _ in range(2)]
    head = mx.nd.random.uniform(-1, 1, (*shape[:2], units * directions))
    weights.attach_grad()
    made = []

    def step():
        with mx.autograd.record():
            out = mx.nd.RNN(data, weights, *states, state_size=units, num_layers=layers, mode=mode)
        out.backward(head)
        mx.nd.sgd_update(weights, weights.grad, out=weights, lr=0.001)
        mx.nd.waitall()
        made[:] = [out]

    return step, lambda: float((made[0] * head).sum().asscalar())


def _layer(mx, mode, shape, units, layers, both):
    kind = {"lstm": mx.gluon.rnn.LSTM, "gru": mx.gluon.rnn.GRU}[mode]
    return _hybridised(mx, kind(units, layers, bidirectional=both, input_size=shape[2]), shape)


def _cells(mx, mode, shape, units, layers, both):
    rnn = mx.gluon.rnn

    class Unrolled(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.stack = rnn.HybridSequentialRNNCell()
                for i in range(layers):
                    self.stack.add(rnn.LSTMCell(units, input_size=units if i else shape[2]))

        def hybrid_forward(self, F, x):
            return self.stack.unroll(shape[0], x, layout="TNC", merge_outputs=True)[0]

    return _hybridised(mx, Unrolled(), shape)


def _hybridised(mx, net, shape):
    net.initialize(mx.init.Uniform(0.1))
    net.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.001})
    data = mx.nd.random.uniform(-0.1, 0.1, shape)
    head = mx.nd.random.uniform(-1, 1, net(data).shape)
    made = []
    run = step_of(mx, trainer, 1, lambda: net(data), head)

    def step():
        made[:] = [run()]

    return step, lambda: float((made[0] * head).sum().asscalar())


def _size(inputs, units, layers):
    """Number of weights of an LSTM in one direction."""
    return sum(4 * units * ((inputs if i == 0 else units) + units + 2) for i in range(layers))


if __name__ == "__main__":
    import mxnet

    serve(lambda case: stepper(mxnet, case)[0])
