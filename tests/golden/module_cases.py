"""Training runs that MXNet 1.9.1 and mxcore both make; imported by the maker and by the test."""

STEPS, BATCH, CLASSES = 10, 8, 3
IMAGE = (2, 6, 6)
ALL = {"wd": 0.01, "clip_gradient": 0.5}

#: Key -> (optimizer, its arguments, number of contexts, kvstore). SGLD is left out: it draws random numbers.
CASES = {
    **{
        f"{name}{i}": (name, params, 1, "local")
        for name, variants in {
            "sgd": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "momentum": 0.9, **ALL}],
            "ccsgd": [{"learning_rate": 0.1, "momentum": 0.9}],
            "nag": [{"learning_rate": 0.1, "momentum": 0.9, **ALL}],
            "signum": [{"learning_rate": 0.01, "momentum": 0.9}],
            # Not with batch_scale=2: there MXNet keeps the gradient's array, which the next step overwrites, not its
            # values.
            "lbsgd": [{"learning_rate": 0.1, "momentum": 0.9, "updates_per_epoch": 5}],
            "lars": [{"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}],
            "lamb": [{"learning_rate": 0.02, "wd": 0.01}],
            "dcasgd": [{"learning_rate": 0.1}],
            "adam": [{"learning_rate": 0.01}, {"learning_rate": 0.01, **ALL}],
            "adagrad": [{"learning_rate": 0.1}],
            "rmsprop": [{"learning_rate": 0.01}, {"learning_rate": 0.01, "centered": True}],
            "adadelta": [{"rho": 0.9, "epsilon": 1e-3}],
            "ftrl": [{"learning_rate": 0.1, "lamda1": 0.001}],
            "ftml": [{"learning_rate": 0.01}],
            "adamax": [{"learning_rate": 0.01}],
            "nadam": [{"learning_rate": 0.01}],
            "groupadagrad": [{"learning_rate": 0.1}],
            "test": [{"rescale_grad": -0.01}],
        }.items()
        for i, params in enumerate(variants)
    },
    "local_two": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, 2, "local"),
    "device_two": ("adam", {"learning_rate": 0.01}, 2, "device"),
    "none_two": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, 2, None),
}

#: Parameters that an optimizer is kept from: this one moves matrices only.
FIXED = {"groupadagrad": ["conv_weight", "bn_gamma", "bn_beta", "fc_bias"]}


def network(mx):
    """A small network of all the usual parts."""
    # A bias before BatchNorm has no gradient but rounding errors, of which Adam and its kin make whole steps.
    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, no_bias=True, name="conv")
    net = mx.sym.BatchNorm(net, fix_gamma=False, momentum=0.8, eps=1e-3, name="bn")
    net = mx.sym.Activation(net, act_type="relu", name="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = mx.sym.FullyConnected(net, num_hidden=CLASSES, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def batches(mx, given):
    """The batches in order."""
    for data, label in zip(given["data"], given["label"]):
        yield mx.io.DataBatch([mx.nd.array(data)], [mx.nd.array(label)])


def flat(params):
    """Parameters and states as one row of numbers, by name."""
    args, auxs = params
    return [float(x) for part in (args, auxs) for name in sorted(part) for x in part[name].asnumpy().ravel()]


def train(mx, given, case):
    """Ten steps; the parameters after the fifth and the last."""
    name, params, contexts, kvstore = case
    mod = mx.mod.Module(network(mx), context=[mx.cpu(i) for i in range(contexts)], fixed_param_names=FIXED.get(name))
    mod.bind([("data", (BATCH, *IMAGE))], [("softmax_label", (BATCH,))])
    args, auxs = (
        {k.partition(".")[2]: mx.nd.array(v) for k, v in given.items() if k.startswith(kind)}
        for kind in ("arg.", "aux.")
    )
    mod.init_params(arg_params=args, aux_params=auxs)
    mod.init_optimizer(kvstore=kvstore, optimizer=name, optimizer_params=dict(params))
    rows = []
    for step, batch in enumerate(batches(mx, given)):
        mod.forward_backward(batch)
        mod.update()
        if step in (STEPS // 2 - 1, STEPS - 1):
            mx.nd.waitall()  # MXNet's get_params may overtake the statistics, which BatchNorm moves in backward
            rows.append(flat(mod.get_params()))
    return rows
