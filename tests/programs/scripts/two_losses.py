"""A module with two losses and an iterator of its own."""

import mxnet as mx, numpy as np

np.random.seed(1)


class It(mx.io.DataIter):
    def __init__(s):
        super(It, s).__init__(5)
        s.i = 0

    @property
    def provide_data(s):
        return [mx.io.DataDesc("data", (5, 4))]

    @property
    def provide_label(s):
        return [("l1", (5,)), ("l2", (5, 2))]

    def reset(s):
        s.i = 0

    def next(s):
        if s.i >= 3:
            raise StopIteration
        s.i += 1
        r = np.random.RandomState(s.i)
        return mx.io.DataBatch(
            [mx.nd.array(r.rand(5, 4))], [mx.nd.array(r.randint(0, 3, 5)), mx.nd.array(r.rand(5, 2))], pad=0
        )


d = mx.sym.var("data")
h = mx.sym.FullyConnected(d, num_hidden=6, name="h")
a = mx.sym.SVMOutput(mx.sym.FullyConnected(h, num_hidden=3, name="a"), mx.sym.var("l1"), name="svm")
b = mx.sym.FullyConnected(h, num_hidden=2, name="b")
l = mx.sym.MakeLoss(mx.sym.mean(mx.sym.square(b - mx.sym.var("l2"))), name="mse", grad_scale=2.0)
g = mx.sym.Group([a, l, mx.sym.BlockGrad(b, name="bg")])
m = mx.mod.Module(g, ("data",), ("l1", "l2"))
it = It()
m.bind(it.provide_data, it.provide_label)


class C(mx.init.Initializer):
    def _init_weight(s, k, a):
        a[:] = np.sin(np.arange(a.size) + 1).reshape(a.shape) * 0.3


m.init_params(C())
m.init_optimizer(optimizer="sgd", optimizer_params={"learning_rate": 0.1})


class M(mx.metric.EvalMetric):
    def __init__(s):
        super().__init__("m", output_names=["mse_output"], label_names=[])

    def update(s, l, p):
        s.sum_metric += p[0].asnumpy().sum()
        s.num_inst += 1


for e in range(3):
    it.reset()
    mt = M()
    for bt in it:
        m.forward_backward(bt)
        m.update()
        m.update_metric(mt, bt.label)
    print(mt.get(), m.get_outputs()[2].asnumpy().sum().round(4))
