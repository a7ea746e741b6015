"""What both libraries are asked: cells unrolled, weights packed and unpacked, sentences in buckets."""

import contextlib
import io
import random
import zlib

import numpy as np

BATCH, STEPS, WIDTH, HIDDEN = 2, 3, 4, 3


def numbers(name, shape):
    """The same numbers for a name everywhere."""
    return np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape).astype("float32")


def cells(mx):
    """Name -> (cell, keywords of unroll, shape of a step's input)."""
    r = mx.rnn
    found = {
        "rnn": lambda: r.RNNCell(HIDDEN),
        "rnn_relu": lambda: r.RNNCell(HIDDEN, activation="relu", prefix="top_"),
        "rnn_function": lambda: r.RNNCell(HIDDEN, activation=mx.sym.sigmoid),
        "lstm": lambda: r.LSTMCell(HIDDEN),
        "lstm_forget": lambda: r.LSTMCell(HIDDEN, forget_bias=2.5, params=r.RNNParams("lstm_")),
        "gru": lambda: r.GRUCell(HIDDEN),
        "dropout": lambda: r.DropoutCell(0.3),
        "no_dropout": lambda: r.DropoutCell(0),
        "residual": lambda: r.ResidualCell(r.GRUCell(WIDTH)),
        "zoneout": lambda: r.ZoneoutCell(r.RNNCell(HIDDEN), 0.2, 0.3),
        "zoneout_states": lambda: r.ZoneoutCell(r.LSTMCell(HIDDEN), 0, 0.3),
        "bidirectional": lambda: r.BidirectionalCell(r.LSTMCell(HIDDEN, prefix="l_"), r.GRUCell(HIDDEN, prefix="r_")),
        "stack": lambda: stack(r, r.LSTMCell(HIDDEN, prefix="a_"), r.DropoutCell(0.2), r.GRUCell(HIDDEN, prefix="b_")),
        "stack_both": lambda: stack(
            r,
            r.BidirectionalCell(r.RNNCell(HIDDEN, prefix="l_"), r.RNNCell(HIDDEN, prefix="r_")),
            r.ResidualCell(r.RNNCell(2 * HIDDEN, prefix="t_")),
        ),
        "residual_zoneout": lambda: r.ResidualCell(r.ZoneoutCell(r.RNNCell(WIDTH), 0.1)),
        "conv_rnn": lambda: r.ConvRNNCell((1, 2, 5, 5), HIDDEN),
        "conv_lstm": lambda: r.ConvLSTMCell(
            (1, 2, 5, 5), HIDDEN, h2h_kernel=(1, 1), i2h_stride=(2, 2), activation="tanh"
        ),
        "conv_gru": lambda: r.ConvGRUCell((1, 2, 5, 5), HIDDEN, h2h_dilate=(2, 2), i2h_kernel=(2, 2)),
    }
    for mode in ("rnn_relu", "rnn_tanh", "lstm", "gru"):
        for both in (False, True):
            name = f"fused_{mode}_{'both' if both else 'one'}"
            found[name] = lambda mode=mode, both=both: r.FusedRNNCell(HIDDEN, 2, mode, both, get_next_state=True)
            found[name + "_unfused"] = lambda mode=mode, both=both: r.FusedRNNCell(
                HIDDEN, 2, mode, both, dropout=0.2
            ).unfuse()
    return found


def stack(r, *parts):
    """A stack of cells."""
    found = r.SequentialRNNCell()
    for part in parts:
        found.add(part)
    return found


#: Ways to unroll: keywords, and whether inputs come as a list.
WAYS = {
    "NTC": ({"layout": "NTC"}, False),
    "TNC": ({"layout": "TNC"}, False),
    "merged": ({"layout": "NTC", "merge_outputs": True}, False),
    "list": ({"layout": "NTC", "merge_outputs": False}, True),
    "states": ({"layout": "TNC", "merge_outputs": True}, False),
}


def flat(states):
    """States, also those that are lists of lists."""
    return [s for x in states for s in (flat(x) if isinstance(x, list) else [x])]


def graph(mx, name, way):
    """(cell, symbol of outputs and states, shapes of its inputs)."""
    keywords, as_list = WAYS[way]
    with mx.name.NameManager():
        cell = cells(mx)[name]()
        step = (2, 5, 5) if name.startswith("conv") else (WIDTH,)
        if as_list:
            inputs = [mx.sym.Variable(f"x{i}") for i in range(STEPS)]
            shapes = {f"x{i}": (BATCH, *step) for i in range(STEPS)}
        else:
            inputs = mx.sym.Variable("x")
            shapes = {"x": (BATCH, STEPS, *step) if keywords["layout"] == "NTC" else (STEPS, BATCH, *step)}
        begin = None
        if way == "states" and cell.state_info and name not in ("stack_both", "residual_zoneout"):  # where MXNet fails
            wraps = isinstance(cell, mx.rnn.ModifierCell)  # whose argument has another name
            begin = cell.begin_state(**{"init_sym" if wraps else "func": mx.sym.Variable})
            shapes.update({s.name: tuple(n or BATCH for n in info["shape"]) for s, info in zip(begin, cell.state_info)})
        outputs, states = cell.unroll(STEPS, inputs, begin_state=begin, **keywords)
        outputs = outputs if isinstance(outputs, list) else [outputs]
        # An output that is a state too would be two heads of one entry, of which MXNet 1.9.1 drops a gradient.
        return cell, mx.sym.Group([*outputs, *map(mx.sym.identity, flat(states))]), shapes


def run(mx, name, way):
    """Outputs and gradients of a case; without chance, so in the mode of testing where there is any."""
    _, symbol, shapes = graph(mx, name, way)
    chance = any(word in name for word in ("dropout", "zoneout", "stack", "unfused")) and name != "stack_both"
    exe = symbol.simple_bind(mx.cpu(), grad_req="null" if chance else "write", **shapes)
    for n, a in exe.arg_dict.items():
        a[:] = mx.nd.array(numbers(n, a.shape))
    exe.forward(is_train=not chance)
    found = {f"out{i}": y.asnumpy() for i, y in enumerate(exe.outputs)}
    if not chance:
        exe.backward([mx.nd.array(numbers(f"dy{i}", y.shape)) for i, y in enumerate(exe.outputs)])
        found.update({f"grad_{n}": g.asnumpy() for n, g in exe.grad_dict.items()})
    return found


def weights(mx, name):
    """The weights of a cell, unpacked and packed again, and what initialisers make of the fused vector."""
    cell, symbol, shapes = graph(mx, name, "TNC")
    sizes = dict(zip(symbol.list_arguments(), symbol.infer_shape(**shapes)[0]))
    given = {n: mx.nd.array(numbers(n, s)) for n, s in sizes.items() if n != "x"}
    apart = cell.unpack_weights(given)
    whole = cell.pack_weights(apart)
    return {
        **{"apart_" + n: a.asnumpy() for n, a in apart.items()},
        **{"whole_" + n: a.asnumpy() for n, a in whole.items()},
    }


def sentences():
    """Made up, of lengths 1 to 9."""
    rs = np.random.RandomState(5)
    return [rs.randint(1, 20, size=rs.randint(1, 10)).tolist() for _ in range(60)]


ITERATORS = {
    "plain": {"batch_size": 4, "buckets": [4, 8]},
    "auto": {"batch_size": 5, "invalid_label": 0},
    "time_major": {
        "batch_size": 3,
        "buckets": [10, 5],
        "layout": "TN",
        "data_name": "d",
        "label_name": "l",
        "dtype": "int32",
    },
}


def batches(mx, name):
    """Two epochs: descriptions and arrays."""
    random.seed(3)
    np.random.seed(4)
    with contextlib.redirect_stdout(io.StringIO()) as told:
        it = mx.rnn.BucketSentenceIter(sentences(), **ITERATORS[name])
    facts = {
        "buckets": it.buckets,
        "default": it.default_bucket_key,
        "told": told.getvalue(),
        "batches": [],
        "data": [[d.name, list(d.shape), d.layout] for d in it.provide_data + it.provide_label],
    }
    arrays = []
    for _ in range(2):
        for b in it:
            facts["batches"].append(
                [b.bucket_key, b.pad, [[d.name, list(d.shape), d.layout] for d in b.provide_data + b.provide_label]]
            )
            arrays += [b.data[0].asnumpy(), b.label[0].asnumpy()]
        it.reset()
    return facts, arrays


WORDS = [["a", "b", "a"], ["c", "a", "d"]]
CODINGS = {
    "new": {},
    "start": {"start_label": 1, "invalid_label": 0, "invalid_key": "<pad>"},
    "skips": {"start_label": -2, "invalid_label": -1},
    "given": {"vocab": {"a": 5, "b": 6, "c": 7, "d": 9}},
}


def coded(mx, name):
    """Sentences as numbers, and the vocabulary."""
    keywords = dict(CODINGS[name])
    if "vocab" in keywords:
        keywords["vocab"] = dict(keywords["vocab"])
    found, vocab = mx.rnn.encode_sentences(WORDS, **keywords)
    return [found, vocab]
