"""A generative network as two modules."""

import mxnet as mx, numpy as np

np.random.seed(0)


def g():
    z = mx.sym.Variable("rand")
    x = mx.sym.Deconvolution(z, name="g1", kernel=(4, 4), num_filter=4, no_bias=True)
    x = mx.sym.BatchNorm(x, name="gbn", fix_gamma=True, eps=1e-5 + 1e-12)
    x = mx.sym.Activation(x, act_type="relu")
    x = mx.sym.Deconvolution(x, name="g2", kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=1, no_bias=True)
    return mx.sym.Activation(x, name="gact", act_type="tanh")


def d():
    x = mx.sym.Variable("data")
    y = mx.sym.Variable("label")
    x = mx.sym.Convolution(x, name="d1", kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, no_bias=True)
    x = mx.sym.LeakyReLU(x, act_type="leaky", slope=0.2)
    x = mx.sym.Flatten(x)
    x = mx.sym.FullyConnected(x, num_hidden=1, name="d2")
    return mx.sym.LogisticRegressionOutput(data=x, label=y, name="dloss")


B = 4
mg = mx.mod.Module(g(), data_names=("rand",), label_names=None)
mg.bind([("rand", (B, 3, 1, 1))])
md = mx.mod.Module(d(), data_names=("data",), label_names=("label",))
md.bind([("data", (B, 1, 8, 8))], [("label", (B,))], inputs_need_grad=True)


class I(mx.init.Initializer):
    def _init_weight(self, n, a):
        a[:] = np.cos(np.arange(a.size)).reshape(a.shape) * 0.1


for m in (mg, md):
    m.init_params(I())
    m.init_optimizer(optimizer="adam", optimizer_params={"learning_rate": 0.01, "beta1": 0.5})
for t in range(3):
    z = mx.nd.array(np.random.randn(B, 3, 1, 1))
    mg.forward(mx.io.DataBatch([z], None), is_train=True)
    fake = mg.get_outputs()
    md.forward(mx.io.DataBatch(fake, [mx.nd.zeros(B)]), is_train=True)
    md.backward()
    gr = [[x.copyto(x.context) for x in l] for l in md._exec_group.grad_arrays]
    md.forward(mx.io.DataBatch([mx.nd.array(np.random.rand(B, 1, 8, 8))], [mx.nd.ones(B)]), is_train=True)
    md.backward()
    for a, b in zip(md._exec_group.grad_arrays, gr):
        for p, q in zip(a, b):
            p += q
    md.update()
    md.forward(mx.io.DataBatch(fake, [mx.nd.ones(B)]), is_train=True)
    md.backward()
    mg.backward(md.get_input_grads())
    mg.update()
    print(t, md.get_outputs()[0].asnumpy().ravel().round(4), fake[0].asnumpy().std().round(4))
