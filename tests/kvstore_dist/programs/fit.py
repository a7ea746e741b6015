"""Image classification by Module, with the options and the schedule of training scripts of its time."""

import argparse
import logging

import mxnet as mx
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--kv-store", type=str, default="dist_device_sync")
parser.add_argument("--num-epochs", type=int, default=4)
parser.add_argument("--num-examples", type=int, default=320)
parser.add_argument("--batch-size", type=int, default=20)
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--lr-factor", type=float, default=0.5)
parser.add_argument("--lr-step-epochs", type=str, default="1,3")
parser.add_argument("--mom", type=float, default=0.9)
parser.add_argument("--wd", type=float, default=0.0001)
args = parser.parse_args()


def get_lr_scheduler(args, kv):
    epoch_size = args.num_examples / args.batch_size
    if "dist" in args.kv_store:
        epoch_size /= kv.num_workers
    steps = [int(epoch_size * int(e)) for e in args.lr_step_epochs.split(",")]
    return args.lr, mx.lr_scheduler.MultiFactorScheduler(step=steps, factor=args.lr_factor)


kv = mx.kvstore.create(args.kv_store)
logging.basicConfig(level=logging.WARNING)
draw = np.random.RandomState(1)
label = draw.randint(0, 5, args.num_examples)
data = (np.eye(5)[label].repeat(4, 1) + draw.normal(0, 0.8, (args.num_examples, 20))).astype("float32")
train = mx.io.NDArrayIter(data[kv.rank :: kv.num_workers], label[kv.rank :: kv.num_workers], args.batch_size)
val = mx.io.NDArrayIter(data, label, args.batch_size)

net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=16, name="fc1")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(net, num_hidden=5, name="fc2"), name="softmax")
shapes, _, _ = net.infer_shape(data=(args.batch_size, 20))
arg_params = {
    name: mx.nd.array(np.random.RandomState(i).uniform(-0.3, 0.3, shape))
    for i, (name, shape) in enumerate(zip(net.list_arguments(), shapes))
    if name not in ("data", "softmax_label")
}

lr, lr_scheduler = get_lr_scheduler(args, kv)
model = mx.mod.Module(symbol=net, context=[mx.cpu(0), mx.cpu(1)])
found = []


def report(epoch, symbol, arg, aux):
    found.append(float(np.abs(arg["fc1_weight"].asnumpy()).sum()))


model.fit(
    train,
    begin_epoch=0,
    num_epoch=args.num_epochs,
    eval_data=val,
    eval_metric=["accuracy", mx.metric.create("ce")],
    kvstore=kv,
    optimizer="sgd",
    optimizer_params={
        "learning_rate": lr,
        "momentum": args.mom,
        "wd": args.wd,
        "lr_scheduler": lr_scheduler,
        "multi_precision": True,
    },
    arg_params=arg_params,
    batch_end_callback=[mx.callback.Speedometer(args.batch_size, 1000)],
    epoch_end_callback=report,
    allow_missing=True,
)
print("rank %d: weights" % kv.rank, " ".join("%.4f" % value for value in found))
for name, value in model.score(val, ["accuracy", mx.metric.create("ce")]):
    print("rank %d: %s %.4f" % (kv.rank, name, value))
