"""Module step by step, with the rate and the batch scaled by the number of workers, and a warm-up."""

import mxnet as mx
import numpy as np

kv = mx.kv.create("dist_sync")
batch_size, epochs, examples = 16, 3, 192
draw = np.random.RandomState(6)
weight = draw.normal(size=(10, 1))
x = draw.normal(size=(examples, 10)).astype("float32")
y = x.dot(weight)[:, 0].astype("float32")
mine = slice(examples // kv.num_workers * kv.rank, examples // kv.num_workers * (kv.rank + 1))
train = mx.io.ResizeIter(
    mx.io.NDArrayIter(x[mine], y[mine], batch_size, label_name="lin_label"), examples // kv.num_workers // batch_size
)

net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
net = mx.sym.LinearRegressionOutput(net, mx.sym.var("lin_label"), name="lin")
mod = mx.mod.Module(net, label_names=["lin_label"])
mod.bind(train.provide_data, train.provide_label)
mod.init_params(mx.init.One())
steps = examples // kv.num_workers // batch_size
schedule = mx.lr_scheduler.CosineScheduler(
    max_update=epochs * steps, base_lr=0.05 * kv.num_workers, final_lr=0.001, warmup_steps=2, warmup_begin_lr=0.01
)
mod.init_optimizer(
    kvstore=kv,
    optimizer="nag",
    optimizer_params={
        "lr_scheduler": schedule,
        "learning_rate": 0.05 * kv.num_workers,
        "momentum": 0.5,
        "rescale_grad": 1.0 / (batch_size * kv.num_workers),
    },
)
metric = mx.metric.create("mse")
for epoch in range(epochs):
    train.reset()
    metric.reset()
    for batch in train:
        mod.forward_backward(batch)
        mod.update()
        mod.update_metric(metric, batch.label)
    print("rank %d: epoch %d %s %.4f" % ((kv.rank, epoch) + metric.get()))
arg, _ = mod.get_params()
print("rank %d:" % kv.rank, " ".join("%.4f" % w for w in arg["fc_weight"].asnumpy()[0]))
