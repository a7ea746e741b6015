"""Layers and losses on small inputs: run in MXNet for the golden files, and here against them."""

import numpy as np


def layers(nn):
    """(layer, input shape) for every layer, in an order that the names in the golden files depend on."""
    return [
        (nn.Dense(3), (2, 4)),
        (nn.Dense(3, activation="relu", use_bias=False, flatten=False), (2, 3, 4)),
        (nn.Dense(3, in_units=4, activation="tanh"), (2, 4)),
        (nn.Conv1D(4, 3), (1, 2, 8)),
        (nn.Conv2D(4, (3, 2), strides=2, padding=1, dilation=2, groups=2, activation="tanh"), (1, 2, 9, 9)),
        (nn.Conv3D(2, 3, use_bias=False), (1, 2, 4, 4, 4)),
        (nn.Conv1DTranspose(4, 3), (1, 2, 5)),
        (nn.Conv2DTranspose(4, 3, strides=2, output_padding=1, groups=2, in_channels=2), (1, 2, 4, 4)),
        (nn.Conv3DTranspose(2, 3, strides=(2, 2, 2), padding=1), (1, 2, 2, 2, 2)),
        (nn.MaxPool1D(), (1, 2, 8)),
        (nn.MaxPool2D(3, 2, 1), (1, 2, 7, 7)),
        (nn.MaxPool3D(ceil_mode=True), (1, 2, 5, 5, 5)),
        (nn.AvgPool1D(count_include_pad=False, padding=1), (1, 2, 8)),
        (nn.AvgPool2D((2, 3)), (1, 2, 7, 7)),
        (nn.AvgPool3D(2, 1), (1, 2, 3, 3, 3)),
        (nn.GlobalMaxPool1D(), (1, 2, 8)),
        (nn.GlobalMaxPool2D(), (1, 2, 4, 4)),
        (nn.GlobalMaxPool3D(), (1, 2, 3, 3, 3)),
        (nn.GlobalAvgPool1D(), (1, 2, 8)),
        (nn.GlobalAvgPool2D(), (1, 2, 4, 4)),
        (nn.GlobalAvgPool3D(), (1, 2, 3, 3, 3)),
        (nn.ReflectionPad2D(1), (1, 2, 4, 4)),
        (nn.BatchNorm(), (2, 3, 4)),
        (nn.BatchNorm(axis=2, scale=False, center=False, use_global_stats=True, epsilon=1e-3, momentum=0.5), (2, 3, 4)),
        (nn.BatchNormReLU(), (2, 3, 2, 2)),
        (nn.InstanceNorm(), (2, 3, 4)),
        (nn.InstanceNorm(axis=2, scale=True), (2, 3, 4)),
        (nn.LayerNorm(), (2, 3, 4)),
        (nn.LayerNorm(axis=1, scale=False), (2, 3, 4)),
        (nn.GroupNorm(2), (2, 4, 4)),
        (nn.Dropout(0.5), (2, 3)),
        (nn.Dropout(0), (2, 3)),
        (nn.Dropout(0.3, axes=(1,)), (2, 3)),
        (nn.Embedding(10, 4), (2, 3)),
        (nn.Flatten(), (2, 3, 4)),
        (nn.Activation("sigmoid"), (2, 3)),
        (nn.LeakyReLU(0.1), (2, 3)),
        (nn.PReLU(), (2, 3)),
        (nn.PReLU(in_channels=3), (2, 3)),
        (nn.ELU(0.5), (2, 3)),
        (nn.SELU(), (2, 3)),
        (nn.GELU(), (2, 3)),
        (nn.Swish(), (2, 3)),
        (nn.HybridLambda("relu"), (2, 3)),
        (nn.HybridLambda(lambda F, x: F.exp(x) + 1), (2, 3)),
    ]


def values(shape, start):
    """Numbers between -1 and 1 without a random generator, so that every version makes the same."""
    n = int(np.prod(shape))
    return np.sin(np.arange(start, start + n) * 1.7).reshape(shape).astype("float32")


def fill(block, nd):
    """Give every parameter values of its own; variances and scales stay positive, fixed scales 1."""
    for i, (name, p) in enumerate(block.collect_params().items()):
        if name.endswith("gamma") and p.grad_req == "null":
            continue
        v = values(p.shape, 10 * i + 1) * 0.5
        p.set_data(nd.array(v + 1.5 if name.endswith(("gamma", "var", "alpha")) else v))


def run_layer(layer, shape, mx):
    """What a layer says, has, computes and learns on a fixed input."""
    told = [repr(layer), repr(layer.collect_params())]
    x = mx.nd.array(values(shape, 3))
    is_embedding = "Embedding" in told[0]
    if is_embedding:
        x = mx.nd.array(np.arange(np.prod(shape)).reshape(shape))
    layer.initialize()
    layer(x)
    told += [repr(layer), repr(layer.collect_params())]
    fill(layer, mx.nd)
    arrays = {"predicted": layer(x).asnumpy()}
    if not is_embedding:
        x.attach_grad()
    # Dropout draws; its numbers are tested elsewhere.
    if "Dropout" not in told[0]:
        with mx.autograd.record():
            y = layer(x)
            loss = (y * y * mx.nd.array(values(y.shape, 7))).sum()
        loss.backward()
        arrays["trained"] = y.asnumpy()
        # MXNet's gradient of SELU is not its derivative.
        if not is_embedding and "SELU" not in told[0]:
            arrays["gradient"] = x.grad.asnumpy()
        for i, p in enumerate(layer.collect_params().values()):
            if p.grad_req != "null":
                arrays[f"gradient{i}"] = p.grad().asnumpy()
            arrays[f"value{i}"] = p.data().asnumpy()
    return told, arrays


def losses(mx):
    """(name, keywords, arguments) for every loss."""

    def a(shape, start, low=-2.0, high=2.0):
        return mx.nd.array((values(shape, start) + 1) / 2 * (high - low) + low)

    pred, label, weight = a((4, 5), 1), a((4, 5), 40), a((4, 1), 80, 0, 1)
    probability, target = a((4, 5), 1, 0.1, 0.9), a((4, 5), 40, 0, 1)
    cases = []
    for name in ("L2Loss", "L1Loss", "HuberLoss", "HingeLoss", "SquaredHingeLoss", "LogisticLoss"):
        for kw in ({}, {"weight": 0.7}, {"batch_axis": 1}):
            cases += [(name, kw, (pred, label)), (name, kw, (pred, label, weight))]
        cases.append((name, {}, (pred, label.reshape((5, 4)))))
    cases += [
        ("HuberLoss", {"rho": 0.3}, (pred, label)),
        ("LogisticLoss", {"label_format": "binary"}, (pred, label > 0)),
    ]
    for kw in ({}, {"from_sigmoid": True}, {"weight": 2.0}):
        cases += [
            ("SigmoidBCELoss", kw, (probability, target)),
            ("SigmoidBCELoss", kw, (probability, target, weight)),
            ("SigmoidBCELoss", kw, (probability, target, None, a((1, 5), 9, 0.5, 3))),
        ]
    classes = mx.nd.array([0, 2, 4, 1])
    for kw in ({}, {"weight": 0.3}, {"from_logits": True}):
        cases += [
            ("SoftmaxCELoss", kw, (pred, classes)),
            ("SoftmaxCELoss", kw, (pred, classes, weight)),
            ("SoftmaxCELoss", {**kw, "sparse_label": False}, (pred, target)),
        ]
    cases += [
        ("SoftmaxCELoss", {"axis": 1}, (a((2, 5, 3), 2), mx.nd.array([[0, 1, 2], [3, 4, 0]]))),
        ("KLDivLoss", {}, (pred, target)),
        ("KLDivLoss", {"from_logits": False}, (a((2, 3, 4), 2), a((2, 3, 4), 5, 0, 1))),
        ("KLDivLoss", {"from_logits": False, "axis": 0, "weight": 2.0}, (pred, target, weight)),
    ]
    signs = mx.nd.array([1, -1, 1, -1])
    for kw in ({}, {"margin": 0.3, "weight": 2.0}):
        cases += [
            ("TripletLoss", kw, (pred, label, a((4, 5), 60))),
            ("CosineEmbeddingLoss", kw, (pred, label, signs)),
            ("CosineEmbeddingLoss", kw, (pred, label, signs, weight)),
        ]
    counts = mx.nd.array(np.arange(20).reshape(4, 5) % 4)
    for kw in ({}, {"from_logits": False, "weight": 2.0}):
        cases += [("PoissonNLLLoss", kw, (probability, counts)), ("PoissonNLLLoss", kw, (probability, counts, weight))]
    cases += [("SDMLLoss", {}, (pred, label)), ("SDMLLoss", {"smoothing_parameter": 0.1, "weight": 0.5}, (pred, label))]
    sequence, text = a((2, 10, 6), 2), mx.nd.array([[1, 0, -1, -1], [2, 1, 1, -1]])
    cases += [
        ("CTCLoss", {}, (sequence, text)),
        ("CTCLoss", {"weight": 0.5}, (sequence, text)),
        ("CTCLoss", {"layout": "TNC", "label_layout": "TN"}, (sequence.transpose((1, 0, 2)), text.T)),
        ("CTCLoss", {}, (sequence, text, mx.nd.array([8, 9]), mx.nd.array([2, 3]))),
        ("CTCLoss", {}, (sequence, text, None, mx.nd.array([2, 3]))),
    ]
    return cases


def run_loss(loss, args, mx):
    """Value of a loss and gradient of its first argument."""
    x = args[0].copy()
    x.attach_grad()
    with mx.autograd.record():
        value = loss(x, *args[1:])
    value.backward()
    return value.asnumpy(), x.grad.asnumpy()


def network(nn):
    """A small network of the usual layers."""
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            nn.Conv2D(3, 3, padding=1, activation="relu"),
            nn.BatchNorm(),
            nn.MaxPool2D(),
            nn.Dense(4, activation="relu"),
            nn.Dropout(0.5),
            nn.Dense(2),
        )
    return net
