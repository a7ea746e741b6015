"""A module with a metric of its own, callbacks, checkpoints and predictions."""

import mxnet as mx, numpy as np, logging, os, tempfile

np.random.seed(3)
mx.random.seed(3)
X = np.random.rand(200, 10).astype("f")
y = (X.sum(1) > 5).astype("f")
tr = mx.io.NDArrayIter(X[:160], y[:160], 20, shuffle=False, label_name="softmax_label")
va = mx.io.NDArrayIter(X[160:], y[160:], 20)
d = mx.sym.Variable("data")
f1 = mx.symbol.FullyConnected(data=d, name="fc1", num_hidden=16)
a = mx.symbol.Activation(data=f1, name="relu1", act_type="relu")
f2 = mx.symbol.FullyConnected(data=a, name="fc2", num_hidden=2)
net = mx.symbol.SoftmaxOutput(data=f2, name="softmax")
mod = mx.mod.Module(net, context=mx.cpu())
seen = []


class Acc2(mx.metric.EvalMetric):
    def __init__(self):
        super(Acc2, self).__init__("acc2")

    def update(self, labels, preds):
        self.sum_metric += (preds[0].asnumpy().argmax(1) == labels[0].asnumpy()).sum()
        self.num_inst += labels[0].shape[0]


mod.fit(
    tr,
    eval_data=va,
    optimizer="sgd",
    optimizer_params=(("learning_rate", 0.5), ("momentum", 0.9)),
    initializer=mx.init.Load(
        {
            "fc1_weight": mx.nd.array(np.random.randn(16, 10) * 0.1),
            "fc2_weight": mx.nd.array(np.random.randn(2, 16) * 0.1),
        },
        default_init=mx.init.Zero(),
    ),
    eval_metric=["acc", Acc2()],
    num_epoch=5,
    batch_end_callback=lambda p: seen.append((p.epoch, p.nbatch)),
    epoch_end_callback=lambda e, s, a, x: seen.append((e, sorted(a))),
)
print(len(seen), seen[-1])
print(mod.score(va, ["acc", "ce"]))
print(mod.predict(va).shape, mod.predict(va).asnumpy()[:3].round(3))
p = os.path.join(tempfile.mkdtemp(), "m")
mod.save_checkpoint(p, 5, save_optimizer_states=True)
print(sorted(os.listdir(os.path.dirname(p))))
m2 = mx.mod.Module.load(p, 5, load_optimizer_states=True)
m2.bind(va.provide_data, va.provide_label, for_training=False)
print(m2.score(va, "acc"))
s, ar, au = mx.model.load_checkpoint(p, 5)
print(sorted(ar), s.list_arguments())
for preds, i, b in mod.iter_predict(va):
    print(i, preds[0].shape, b.pad)
print(mod.get_outputs()[0].shape, [g.shape for g in mod._exec_group.execs[0].grad_arrays if g is not None])
