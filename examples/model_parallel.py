"""Model parallelism: the layers of a stacked LSTM live on different devices.

`mx.AttrScope(ctx_group=...)` names the part of the network that a layer belongs to, and `group2ctx` says where each
part goes: its weights, their gradients and its computation. Values are copied where they cross. The script

1. binds the network by `simple_bind` and by `bind` over two devices, and on one, and compares the numbers;
2. trains it with Module, whose `group2ctxs` may be lists: two halves of each batch (data parallelism), each on a
network that is
   itself spread over two devices (model parallelism); the task is to recall the first symbol of a sequence.

The devices are `mx.cpu(0)`, `mx.cpu(1)`, … so that the script runs anywhere; with `--gpus 4` they are GPUs.

    python model_parallel.py
    python model_parallel.py --layers 4 --hidden 128
"""

import argparse
import logging

import numpy as np

import mxcore as mx


def stacked_lstm(args):
    """LSTM layers: the lower half in the group 'front', the upper half and the output layer in the group 'back'."""
    with mx.AttrScope(ctx_group="front"):
        hidden = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=args.symbols, output_dim=args.hidden, name="embed")
    for i in range(args.layers):
        with mx.AttrScope(ctx_group="front" if i < args.layers // 2 else "back"):
            cell = mx.rnn.LSTMCell(args.hidden, prefix=f"lstm_l{i}_")
            outputs, _ = cell.unroll(args.length, inputs=hidden, layout="NTC")
            hidden = mx.sym.stack(*outputs, axis=1) if i < args.layers - 1 else outputs[-1]
    with mx.AttrScope(ctx_group="back"):
        scores = mx.sym.FullyConnected(hidden, num_hidden=args.symbols, name="pred")
        return mx.sym.SoftmaxOutput(scores, mx.sym.Variable("softmax_label"), name="softmax")


def recall_task(n, args):
    """Random sequences, and the first symbol of each."""
    x = np.random.randint(0, args.symbols, (n, args.length)).astype("float32")
    return x, x[:, 0]


def gradients(exe, values):
    """Outputs and gradients of one pass, by name."""
    for name, value in values.items():
        exe.arg_dict[name][:] = value
    exe.forward(is_train=True)
    exe.backward()
    found = {name: g.asnumpy() for name, g in exe.grad_dict.items() if g is not None}
    found["output"] = exe.outputs[0].asnumpy()
    return found


def largest_difference(a, b):
    assert a.keys() == b.keys()
    return max(np.abs(a[name] - b[name]).max() for name in a)


def compare_executors(net, devices, args):
    """The same pass on one device, and on two by simple_bind and by bind."""
    groups = {"front": devices[0], "back": devices[1]}
    shapes = {"data": (args.batch_size, args.length), "softmax_label": (args.batch_size,)}
    req = {name: "null" if name in shapes else "write" for name in net.list_arguments()}

    one = net.simple_bind(devices[0], grad_req=req, **shapes)
    two = net.simple_bind(devices[0], grad_req=req, group2ctx=groups, **shapes)
    values = {name: np.random.uniform(-0.2, 0.2, a.shape) for name, a in one.arg_dict.items()}
    values["data"], values["softmax_label"] = recall_task(args.batch_size, args)
    for name in ("embed_weight", "lstm_l0_i2h_weight", f"lstm_l{args.layers - 1}_i2h_weight", "pred_weight"):
        print(f"{name:20} on {two.arg_dict[name].context}")

    # With bind the arrays are the caller's, who allocates them where their groups are.
    attrs = net.attr_dict()
    place = {name: groups.get(attrs.get(name, {}).get("__ctx_group__"), devices[0]) for name in net.list_arguments()}
    arrays = {name: mx.nd.zeros(a.shape, ctx=place[name]) for name, a in one.arg_dict.items()}
    grads = {name: mx.nd.zeros(a.shape, ctx=place[name]) for name, a in arrays.items() if req[name] != "null"}
    own = net.bind(devices[0], arrays, args_grad=grads, grad_req=req, group2ctx=groups)

    expected = gradients(one, values)
    print(f"simple_bind: largest difference from one device: {largest_difference(gradients(two, values), expected):g}")
    print(f"bind: largest difference from one device: {largest_difference(gradients(own, values), expected):g}")


def first_parameters(net, args):
    """Parameters to begin with, the same for every way of training."""
    shapes, _, _ = net.infer_shape(data=(args.batch_size, args.length))
    attrs, init, found = net.attr_dict(), mx.init.Xavier(), {}
    for name, shape in zip(net.list_arguments(), shapes):
        if name not in ("data", "softmax_label"):
            found[name] = mx.nd.zeros(shape)
            init(mx.init.InitDesc(name, attrs.get(name)), found[name])
    return found


def train(net, args, start, **where):
    """Train with Module from the given parameters; returns the accuracy on new data, and parameters after an epoch."""
    np.random.seed(args.seed)
    batches = mx.io.NDArrayIter(
        *recall_task(args.examples, args), batch_size=args.batch_size, label_name="softmax_label"
    )
    test = mx.io.NDArrayIter(*recall_task(512, args), batch_size=args.batch_size, label_name="softmax_label")
    model = mx.mod.Module(net, **where)
    after = {}

    def keep(epoch, symbol, arg_params, aux_params):
        after[epoch] = {name: a.asnumpy() for name, a in arg_params.items()}

    model.fit(
        batches,
        num_epoch=args.epochs,
        arg_params=start,
        optimizer="adam",
        optimizer_params={"learning_rate": args.lr},
        epoch_end_callback=keep,
    )
    return model.score(test, "acc")[0][1], after[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gpus", type=int, default=0, help="use this many GPUs (0: CPUs)")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--length", type=int, default=8, help="of the sequences")
    parser.add_argument("--symbols", type=int, default=10)
    parser.add_argument("--examples", type=int, default=2048)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.layers < 2:
        parser.error("--layers: a network needs two layers to be split")
    if args.gpus and args.gpus < 4:
        parser.error("--gpus: two halves of a batch over two devices each are four")
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    np.random.seed(args.seed)
    mx.random.seed(args.seed)
    devices = [mx.gpu(i) for i in range(4)] if args.gpus else [mx.cpu(i) for i in range(4)]
    net = stacked_lstm(args)
    compare_executors(net, devices, args)

    start = first_parameters(net, args)
    single, one = train(net, args, start, context=devices[0])
    # Copy i of the network has its front on the i-th device of one list and its back on the i-th of the other.
    spread, four = train(
        net,
        args,
        start,
        context=[devices[0], devices[2]],
        group2ctxs={"front": [devices[0], devices[2]], "back": [devices[1], devices[3]]},
    )
    print(f"accuracy on one device: {single:.3f}")
    print(f"accuracy with data and model parallelism: {spread:.3f}")
    print(f"parameters: largest difference after one epoch: {largest_difference(four, one):g}")


if __name__ == "__main__":
    main()
