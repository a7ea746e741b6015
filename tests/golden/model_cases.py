"""One small model of each family, composed in MXNet for the golden file and here; graphs in layouts of old files."""

import hashlib
import json

import numpy as np


def relu(mx, x, name):
    return mx.sym.Activation(x, act_type="relu", name=name)


def convolved(mx, x, name, filters, kernel=(3, 3), pad=(1, 1), **kw):
    """Convolution, BatchNorm, relu."""
    x = mx.sym.Convolution(x, kernel=kernel, pad=pad, num_filter=filters, no_bias=True, name=f"{name}_conv", **kw)
    return relu(mx, mx.sym.BatchNorm(x, fix_gamma=False, eps=1e-3, name=f"{name}_bn"), f"{name}_relu")


def mlp(mx):
    x = relu(mx, mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="fc1"), "relu1")
    x = mx.sym.FullyConnected(
        x, weight=mx.sym.Variable("fc2_weight", lr_mult=2.0, wd_mult=0.5), num_hidden=4, name="fc2"
    )
    return mx.sym.SoftmaxOutput(x, name="softmax"), dict(data=(3, 5))


def lenet(mx):
    x = mx.sym.Variable("data")
    for filters in (3, 4):
        x = mx.sym.Activation(mx.sym.Convolution(x, kernel=(3, 3), num_filter=filters), act_type="tanh")
        x = mx.sym.Pooling(x, pool_type="max", kernel=(2, 2), stride=(2, 2))
    x = mx.sym.Activation(mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=6), act_type="tanh")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3), name="softmax"), dict(data=(2, 1, 14, 14))


def resnet(mx):
    x = mx.sym.BatchNorm(mx.sym.Variable("data"), fix_gamma=True, eps=2e-5, momentum=0.9, name="bn_data")
    body = convolved(mx, convolved(mx, x, "unit1", 4, stride=(2, 2)), "unit2", 4)
    x = body + mx.sym.Convolution(x, kernel=(1, 1), stride=(2, 2), num_filter=4, no_bias=True, name="sc", workspace=256)
    x = mx.sym.Pooling(x, global_pool=True, kernel=(7, 7), pool_type="avg", name="pool1")
    return mx.sym.softmax(mx.sym.FullyConnected(mx.sym.flatten(x), num_hidden=3, name="fc1")), dict(data=(2, 3, 8, 8))


def vgg(mx):
    x = mx.sym.Variable("data")
    for block, filters in enumerate((2, 3)):
        for layer in range(2):
            x = relu(
                mx,
                mx.sym.Convolution(data=x, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=f"conv{block}_{layer}"),
                None,
            )
        x = mx.sym.Pooling(data=x, pool_type="max", kernel=(2, 2), stride=(2, 2), name=f"pool{block}")
    x = mx.sym.Dropout(mx.sym.FullyConnected(x, num_hidden=5, name="fc6"), p=0.0, name="drop6")
    return mx.sym.LogisticRegressionOutput(x, name="out"), dict(data=(2, 2, 8, 8))


def inception(mx):
    x = mx.sym.Variable("data")
    pool = mx.sym.Pooling(x, kernel=(3, 3), stride=(1, 1), pad=(1, 1), pool_type="avg", name="pool")
    parts = [
        convolved(mx, x, "a", 2, (1, 1), (0, 0)),
        convolved(mx, convolved(mx, x, "b1", 2, (1, 1), (0, 0)), "b3", 3),
        convolved(mx, pool, "p", 1, (1, 1), (0, 0)),
        mx.sym.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type="max", pooling_convention="full"),
    ]
    return mx.sym.Concat(*parts, name="chain"), dict(data=(2, 2, 5, 5))


def lstm_unrolled(mx):
    """Three steps with begin states of shape (0, hidden), whose batch the data decides."""
    hidden, data = 4, mx.sym.Variable("data")
    embed = mx.sym.Embedding(data, input_dim=7, output_dim=3, name="embed")
    steps = mx.sym.SliceChannel(embed, num_outputs=3, axis=1, squeeze_axis=True, name="steps")
    h, c = (mx.sym.zeros(shape=(0, hidden), name=f"lstm_begin_state_{i}") for i in range(2))
    shared = {k: mx.sym.Variable(f"lstm_{k}") for k in ("i2h_weight", "i2h_bias", "h2h_weight", "h2h_bias")}
    outputs = []
    for t in range(3):
        i2h = mx.sym.FullyConnected(
            steps[t], shared["i2h_weight"], shared["i2h_bias"], num_hidden=4 * hidden, name=f"t{t}_i2h"
        )
        h2h = mx.sym.FullyConnected(
            h, shared["h2h_weight"], shared["h2h_bias"], num_hidden=4 * hidden, name=f"t{t}_h2h"
        )
        i, f, u, o = mx.sym.SliceChannel(i2h + h2h, num_outputs=4, name=f"t{t}_slice")
        c = mx.sym.sigmoid(f) * c + mx.sym.sigmoid(i) * mx.sym.tanh(u)
        h = mx.sym.sigmoid(o) * mx.sym.tanh(c)
        outputs.append(mx.sym.expand_dims(h, axis=1))
    return mx.sym.Group([mx.sym.concat(*outputs, dim=1), h, c]), dict(data=(2, 3))


def rnn(mx):
    out = mx.sym.RNN(mx.sym.Variable("data"), state_size=4, num_layers=1, mode="lstm", state_outputs=True, name="lstm")
    return mx.sym.Group([out[0], out[2]]), dict(data=(3, 2, 5), lstm_state=(1, 2, 4), lstm_state_cell=(1, 2, 4))


def embedding(mx):
    x = mx.sym.Embedding(mx.sym.Variable("data"), input_dim=9, output_dim=4, name="embed")
    x = mx.sym.FullyConnected(x, num_hidden=5, flatten=False, name="fc")
    return mx.sym.LinearRegressionOutput(mx.sym.mean(x, axis=1), name="lro"), dict(data=(3, 4))


def ssd(mx):
    x, heads = (
        relu(
            mx,
            mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=3, name="base"),
            "base_relu",
        ),
        [],
    )
    for i, sizes in enumerate(([0.2, 0.3], [0.5])):
        x = x if i == 0 else mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
        anchors = mx.sym.contrib.MultiBoxPrior(x, sizes=sizes, ratios=(1, 2, 0.5), clip=False, name=f"anchors{i}")
        n = len(sizes) + 2
        loc = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=4 * n, name=f"loc{i}")
        cls = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=3 * n, name=f"cls{i}")
        heads.append(
            [mx.sym.Flatten(mx.sym.transpose(v, axes=(0, 2, 3, 1))) for v in (loc, cls)] + [mx.sym.Flatten(anchors)]
        )
    loc, cls, anchors = (mx.sym.Concat(*parts, dim=1) for parts in zip(*heads))
    cls = mx.sym.transpose(mx.sym.Reshape(cls, shape=(0, -1, 3)), axes=(0, 2, 1), name="cls_pred")
    return mx.sym.Group([loc, mx.sym.softmax(cls, axis=1), mx.sym.Reshape(anchors, shape=(0, -1, 4))]), dict(
        data=(1, 2, 4, 4)
    )


def ssd_trained(mx):
    """A single shot detector with its losses and what it detects: how such models are trained by symbols."""
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), stride=(2, 2), num_filter=4, name="base")
    x = relu(mx, x, "base_relu")
    anchors = mx.sym.contrib.MultiBoxPrior(x, sizes=(0.3, 0.55), ratios=(1, 2), name="anchors")
    loc, cls = (
        mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=3 * n, name=name)
        for name, n in (("loc", 4), ("cls", 4))
    )
    loc = mx.sym.Flatten(mx.sym.transpose(loc, axes=(0, 2, 3, 1)), name="loc_pred")
    cls = mx.sym.Reshape(mx.sym.transpose(cls, axes=(0, 2, 3, 1)), shape=(0, -1, 4))
    cls = mx.sym.transpose(cls, axes=(0, 2, 1), name="cls_pred")
    place, mask, kind = mx.sym.contrib.MultiBoxTarget(
        anchors,
        mx.sym.Variable("label"),
        cls,
        overlap_threshold=0.5,
        ignore_label=-1,
        negative_mining_ratio=3,
        minimum_negative_samples=0,
        negative_mining_thresh=0.5,
        variances=(0.1, 0.1, 0.2, 0.2),
        name="target",
    )
    prob = mx.sym.SoftmaxOutput(
        cls, kind, ignore_label=-1, use_ignore=True, multi_output=True, normalization="valid", name="cls_prob"
    )
    loss = mx.sym.smooth_l1(mask * (loc - place), scalar=1.0, name="loc_loss_")
    loss = mx.sym.MakeLoss(loss, normalization="valid", name="loc_loss")
    found = mx.sym.contrib.MultiBoxDetection(
        prob, loc, anchors, nms_threshold=0.45, nms_topk=20, variances=(0.1, 0.1, 0.2, 0.2), name="detection"
    )
    heads = [prob, loss, mx.sym.MakeLoss(kind, grad_scale=0, name="kind")]
    return mx.sym.Group([*heads, mx.sym.MakeLoss(found, grad_scale=0, name="found")]), dict(
        data=(2, 3, 8, 8), label=(2, 3, 5)
    )


def autoencoder(mx):
    x = relu(
        mx,
        mx.sym.Convolution(mx.sym.Variable("data"), kernel=(2, 2), stride=(2, 2), num_filter=3, name="enc"),
        "enc_relu",
    )
    up = mx.sym.Deconvolution(x, kernel=(2, 2), stride=(2, 2), num_filter=2, no_bias=False, name="dec")
    near = mx.sym.UpSampling(x, scale=2, sample_type="nearest", num_args=1, name="near")
    x = mx.sym.Crop(mx.sym.Concat(up, near, dim=1), offset=(1, 1), h_w=(2, 2), num_args=1, name="crop")
    return mx.sym.MakeLoss(mx.sym.mean(mx.sym.square(x), axis=(1, 2, 3)), grad_scale=2.0, name="loss"), dict(
        data=(2, 2, 4, 4)
    )


def transformer(mx):
    """One head of attention and a feed-forward part, each behind a LayerNorm."""
    x, units = mx.sym.Variable("data"), 4
    y = mx.sym.LayerNorm(x, axis=-1, eps=1e-5, name="ln1")
    q, k, v = (
        mx.sym.FullyConnected(y, num_hidden=units, flatten=False, no_bias=True, name=n)
        for n in ("query", "key", "value")
    )
    scores = mx.sym.softmax(mx.sym.batch_dot(q, k, transpose_b=True) / units**0.5, axis=-1)
    x = x + mx.sym.batch_dot(scores, v)
    y = mx.sym.LayerNorm(x, name="ln2")
    y = mx.sym.LeakyReLU(mx.sym.FullyConnected(y, num_hidden=8, flatten=False, name="ffn1"), act_type="gelu")
    return x + mx.sym.FullyConnected(y, num_hidden=units, flatten=False, name="ffn2"), dict(data=(2, 3, units))


def dcgan(mx):
    """The generator, and the discriminator composed over it."""
    x = mx.sym.Deconvolution(mx.sym.Variable("rand"), kernel=(2, 2), num_filter=3, no_bias=True, name="g1")
    x = relu(mx, mx.sym.BatchNorm(x, fix_gamma=True, eps=1e-5, name="gbn1"), "gact1")
    x = mx.sym.Deconvolution(x, kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=2, no_bias=True, name="g2")
    generator = mx.sym.Activation(x, act_type="tanh", name="gact2")
    d = mx.sym.Convolution(
        mx.sym.Variable("image"), kernel=(4, 4), stride=(2, 2), pad=(1, 1), num_filter=3, no_bias=True, name="d1"
    )
    d = mx.sym.LeakyReLU(d, act_type="leaky", slope=0.2, name="dact1")
    d = mx.sym.Flatten(mx.sym.Convolution(d, kernel=(2, 2), num_filter=1, no_bias=True, name="d2"))
    d = mx.sym.LogisticRegressionOutput(data=d, label=mx.sym.Variable("label"), name="dloss")
    return d(image=generator, name="gan"), dict(rand=(2, 4, 1, 1))


def loop(mx):
    """A recurrence written with foreach."""
    weight = mx.sym.Variable("weight")

    def body(x, state):
        y = mx.sym.tanh(mx.sym.dot(x + state, weight))
        return y * 2, y

    out, state = mx.sym.contrib.foreach(body, mx.sym.Variable("data"), mx.sym.Variable("state"), name="recurrence")
    return mx.sym.Group([out, state]), dict(data=(3, 2, 4), state=(2, 4), weight=(4, 4))


def attributes(mx):
    """Attributes from everywhere."""
    with mx.AttrScope(ctx_group="stage1", __mood__="good"):
        x = mx.sym.Variable("data", shape=(2, 3), dtype="float32", init=mx.init.Uniform(0.25), attr={"lr_mult": "3"})
        with mx.AttrScope(ctx_group="stage2", force_mirroring="True"), mx.name.Prefix("net_"):
            x = mx.sym.FullyConnected(x, num_hidden=2, lr_mult=0.5, attr={"__note__": "n"})
            x = mx.sym.LeakyReLU(x, act_type="prelu", name="slope")
    return x * 2 + mx.sym.Variable("late", stype="row_sparse", wd_mult=0, __own__="1"), {}


MODELS = (
    mlp,
    lenet,
    resnet,
    vgg,
    inception,
    lstm_unrolled,
    rnn,
    embedding,
    ssd,
    ssd_trained,
    autoencoder,
    transformer,
    dcgan,
    loop,
    attributes,
)


def build(mx, model):
    """(symbol, shapes of inputs), with names counted from 0."""
    with mx.name.NameManager():
        return model(mx)


#: Inputs that are no numbers of any kind: (model, name) -> array.
GIVEN = {
    ("ssd_trained", "label"): np.array(
        [
            [[1, 0.1, 0.1, 0.5, 0.6], [0, 0.4, 0.3, 0.9, 0.8], [2, 0.1, 0.1, 0.5, 0.6]],
            [[2, 0.05, 0.5, 0.45, 0.95], [-1, -1, -1, -1, -1], [-1, -1, -1, -1, -1]],
        ]
    )
}


def values(name, shape, seed):
    """The numbers of an argument, auxiliary state or head gradient."""
    rs = np.random.RandomState(sum(map(ord, name)) + 1000 * seed)
    if name.endswith("_var"):
        return rs.uniform(0.5, 1.5, shape).astype("float32")
    return rs.uniform(-1, 1, shape).astype("float32")


def number_of_classes(model):
    """What data and labels of a model count to, if they are whole numbers; else None."""
    return {"embedding": 9, "lstm_unrolled": 7}.get(model), {"mlp": 4, "lenet": 3}.get(model)


def digest(a):
    """An array in few numbers: all of it if it is small, else some elements and sums with random weights."""
    a = np.asarray(a, "float64").ravel()
    if a.size <= 24:
        return a
    rs = np.random.RandomState(a.size)
    return np.concatenate([a[rs.randint(0, a.size, 12)], [a @ rs.uniform(-1, 1, a.size) for _ in range(4)]])


def key(text):
    """A short name for a graph."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def described(mx, symbol, shapes):
    """What both find out about a symbol without running it, as JSON holds it."""

    def types(found):
        return [[np.dtype(t).name for t in part] for part in found]

    lists = {
        n: getattr(symbol, n)()
        for n in ("list_arguments", "list_auxiliary_states", "list_outputs", "list_inputs", "attr_dict")
    }
    inferred = [[list(s) for s in part] for part in symbol.infer_shape(**shapes)]
    first = symbol.list_arguments()[0]
    return {
        **lists,
        "name": symbol.name,
        "internals": symbol.get_internals().list_outputs(),
        "shapes": inferred,
        "children": symbol.get_children().list_outputs(),
        "types": types(symbol.infer_type(**{first: "float32"})),
        "debug_str": symbol.debug_str(),
    }


def run(mx, model, symbol, shapes):
    """Outputs, gradients and auxiliary states after one step of training, by name."""
    data, label = number_of_classes(model)
    reqs = {n: "null" if n == "data" and data else "write" for n in symbol.list_arguments()}
    ex = symbol.simple_bind(mx.cpu(), grad_req=reqs, **shapes)
    for seed, arrays in enumerate((ex.arg_dict, ex.aux_dict)):
        for n, a in arrays.items():
            top = data if n == "data" else label if n.endswith("label") else None
            v = values(n, a.shape, seed)
            a[:] = GIVEN.get((model, n), v if top is None else np.floor((v + 1) / 2 * top))
    outputs = ex.forward(is_train=True)
    found = {f"output {n}": digest(y.asnumpy()) for n, y in zip(symbol.list_outputs(), outputs)}
    ex.backward([mx.nd.array(values(n, y.shape, 2)) for n, y in zip(symbol.list_outputs(), outputs)])
    found.update({f"gradient of {n}": digest(g.asnumpy()) for n, g in ex.grad_dict.items() if g is not None})
    found.update({f"state {n}": digest(a.asnumpy()) for n, a in ex.aux_dict.items()})
    return found


def node(op, name, *inputs, **more):
    return {"op": op, "name": name, "inputs": [list(i) if isinstance(i, tuple) else [i, 0] for i in inputs], **more}


def file(nodes, version=None, **more):
    found = {
        "nodes": nodes,
        "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
        "heads": [[len(nodes) - 1, 0]],
        **more,
    }
    return json.dumps({**found, "attrs": {"mxnet_version": ["int", version]}} if version else found)


def version_0_8():
    """No version, parameters under `param`, no auxiliary states; attributes for inputs on their operator."""

    def old(*args, param=None, **more):
        return node(*args, param=param or {}, backward_source_id=-1, **more)

    return file(
        [
            old("null", "data"),
            old("null", "fc1_weight"),
            old("null", "fc1_bias"),
            old(
                "FullyConnected",
                "fc1",
                0,
                1,
                2,
                param={"no_bias": "False", "num_hidden": "128"},
                attr={
                    "ctx_group": "stage1",
                    "lr_mult": "0.2",
                    "weight_lr_mult": "1.2",
                    "bias_wd_mult": "3",
                    "force_mirroring": "True",
                },
            ),
            old("null", "bn_gamma", attr={"lr_mult": "0.3", "wd_mult": "0.1"}),
            old("null", "bn_beta"),
            old("BatchNorm", "bn", 3, 4, 5, param={"eps": "0.001", "fix_gamma": "True"}, attr={"ctx_group": "s2"}),
            old("Activation", "act", 6, param={"act_type": "relu"}),
            old("null", "softmax_label"),
            old("SoftmaxOutput", "softmax", 7, 8, param={"grad_scale": "1", "multi_output": "False"}),
        ]
    )


def version_0_9(version, **attr):
    return file(
        [
            node("null", "data"),
            node("null", "w", attr={"lr_mult": "2", "__shape__": "(0,)", "foo": "x"}),
            node(
                "FullyConnected",
                "fc1",
                0,
                1,
                attr={"num_hidden": "128", "no_bias": "True", "ctx_group": "g", "__init__": "zz", **attr},
            ),
            node("null", "g"),
            node("null", "b"),
            node("null", "mm"),
            node("null", "mv"),
            node("BatchNorm", "bn", 2, 3, 4, 5, 6, attr={"eps": "0.001"}),
        ],
        version,
        node_row_ptr=[0, 1, 2, 3, 4, 5, 6, 7, 10],
    )


def lone(op, version=None, inputs=(0,), **attr):
    return file([node("null", "data"), node(op, "x", *inputs, attr=attr)], version)


LEGACY = {
    "0.8": version_0_8(),
    "0.9.0": version_0_9(900),
    "0.9.5": version_0_9(905),
    "0.10": version_0_9(1000),
    "0.12": version_0_9(1200, weight_wd_mult="7"),
    "1.3": version_0_9(10300, weight_lr_mult="2"),
    **{
        f"{op} without its inputs": lone(op, **attr)
        for op, attr in (
            ("FullyConnected", dict(num_hidden="3", ctx_group="k")),
            ("Convolution", dict(kernel="(3,3)", num_filter="2")),
            ("BatchNorm", {}),
            ("SoftmaxOutput", {}),
            ("Softmax", {}),
            ("LeakyReLU", dict(act_type="prelu")),
            ("InstanceNorm", {}),
            ("RNN", dict(state_size="2", num_layers="1", mode="lstm")),
            ("elemwise_add", {}),
            ("Embedding", dict(input_dim="3", output_dim="2")),
            ("Deconvolution", dict(kernel="(2,2)", num_filter="1")),
        )
    },
    **{f"argmax of {version}": lone("argmax", version, axis="-1") for version in (None, 904, 905, 10901)},
    **{
        f"{op} by its old name": lone(op, None, inputs, **attr)
        for op, inputs, attr in (
            ("_Plus", (0, 0), {}),
            ("_PlusScalar", (0,), dict(scalar="1")),
            ("ElementWiseSum", (0, 0), dict(num_args="2")),
            ("max_axis", (0,), dict(axis="1")),
            ("Pooling", (0,), dict(kernel="(2,2)", pool_type="max")),
        )
    },
}
