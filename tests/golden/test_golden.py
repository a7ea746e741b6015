"""Every operator gives what the real MXNet 1.9.1 gave: outputs, written inputs and gradients, eager and in a graph.

The files in ``data/`` are made by ``tools/make_golden.py``; they hold inputs and parameters too. Tolerances are
`mxcore.testing.tolerance.GOLDEN`, widened by a sample's own factor. Gradients are compared for ``grad_req='write'``,
and for a spread of samples with ``'add'`` and ``'null'`` as well. What chooses a kernel runs again over the reference
bodies.
"""

import functools
import pathlib

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import tables
from mxcore.testing.catalogue import catalogue, stale
from mxcore.testing.pack import ASKED, Pack, drawn
from mxcore.testing.tolerance import GOLDEN, compare

pytestmark = pytest.mark.both_ways
_ = mx.nd  # arrays have their public face from here on
DATA = pathlib.Path(__file__).resolve().parent / "data"
#: Gradients that MXNet 1.9.1 gets wrong for other values of grad_req than 'write' alone. What these operators should
#: give is taken from its own run with 'write', plus what was there.
ODD = {
    **dict.fromkeys(
        "_contrib_DeformableConvolution _contrib_box_nms Crop SVMOutput SoftmaxOutput SpatialTransformer _np_cumsum "
        "_np_trace _npi_diff _npi_dsplit _npi_flip _npi_hsplit _split_v2 clip reverse".split(),
        "'add' overwrites what was there",
    ),
    **dict.fromkeys("_linalg_inverse _linalg_syevd _linalg_trsm".split(), "'add' leaves what was there"),
    **dict.fromkeys(
        "_contrib_hawkesll _linalg_gelqf _linalg_gemm _linalg_gemm2 _linalg_trmm".split(),
        "'add' mixes up intermediate results",
    ),
    **dict.fromkeys(
        "LinearRegressionOutput LogisticRegressionOutput MAERegressionOutput _npi_mean mean moments".split(),
        "'add' scales what was there",
    ),
    "_contrib_boolean_mask": "'add' forgets what was there in rows that are left out",
    **dict.fromkeys(
        "FullyConnected _contrib_interleaved_matmul_encdec_qk _contrib_interleaved_matmul_selfatt_valatt".split(),
        "wrong gradients where another input is 'null'",
    ),
}
#: What MXNet 1.9.1 leaves out of gradients: operator -> (inputs that get none, outputs that do not count).
LEFT_OUT = {"_contrib_hawkesll": ({3}, {1})}


@functools.cache
def files():
    """Module -> its golden file."""
    return {p.stem: Pack.load(str(p)) for p in sorted(DATA.glob("*.npz")) if "index" in np.load(p).files}


def entries():
    """(module, entry) of everything that MXNet ran."""
    return [(m, e) for m, pack in files().items() for e in pack.entries if e.get("runs")]


def by_operator():
    """A test per operator."""
    found = {}
    for m, e in entries():
        found.setdefault((m, e["op"]), []).append(e)
    return [pytest.param(files()[m], es, id=f"{m}-{op}") for (m, op), es in found.items()]


def inputs(pack, entry, dtype):
    """Arrays of one entry."""
    return [mx.nd.array(pack.get(i), dtype=t) for i, t in zip(entry["inputs"], entry["dtypes"][dtype])]


def check(got, want, dtype, entry, what):
    """Compare with MXNet's number."""
    if want.shape == () and got.shape == (1,):  # MXNet's few arrays without dimensions have one here
        want = want.reshape(1)
    tol = tables.ops.get(entry["op"]).samples[entry["number"]].tol
    compare(got, want, dtype, f"{entry['op']} #{entry['number']} {dtype}, {what}", tol, GOLDEN)


def flows(y):
    """Whether an output takes part in gradients."""
    return np.dtype(y.dtype).kind == "f"


def ways(pack, entry):
    """(dtype, grad_req of the inputs, their gradients) of all runs with gradients."""
    runs = [
        {"dtype": t, "reqs": ["null" if g is None else "write" for g in run["grads"]], **run}
        for t, run in entry["runs"].items()
        if "grads" in run
    ]
    for run in runs + [more for more in entry.get("more", ()) if "grads" in more]:
        grads = (
            due(pack, entry, run) if entry["op"] in ODD else [None if g is None else pack.get(g) for g in run["grads"]]
        )
        none = LEFT_OUT.get(entry["op"], ((), ()))[0]
        yield (
            run["dtype"],
            ["null" if i in none else req for i, req in enumerate(run["reqs"])],
            [None if i in none else g for i, g in enumerate(grads)],
        )


def heads(entry, outputs):
    """The gradients that `make_golden.py` drew for outputs."""
    none = LEFT_OUT.get(entry["op"], ((), ()))[1]
    return [
        mx.nd.array((i not in none) * g, dtype=y.dtype)
        for i, (y, g) in enumerate(zip(outputs, drawn(11, [y.shape for y in outputs])))
    ]


def due(pack, entry, more):
    """What a run should give by MXNet's own gradients for grad_req 'write'."""
    starts = drawn(13, [pack.get(i).shape for i in entry["inputs"]])
    return [
        None if req == "null" else pack.get(g) + (req == "add") * start
        for req, g, start in zip(more["reqs"], entry["runs"][more["dtype"]]["grads"], starts)
    ]


def record(op, pack, entry, dtype, train, reqs=()):
    """(inputs, outputs) of a recorded call."""
    xs = inputs(pack, entry, dtype)
    for x, req, start in zip(xs, reqs, drawn(13, [x.shape for x in xs])):
        if req != "null":
            x.attach_grad(req)
            if req == "add":
                x.grad[:] = mx.nd.array(start, dtype=x.dtype)
    mx.random.seed(7)
    with mx.autograd.record(train):
        ys = op(*xs, **entry["params"])
    return xs, ys if isinstance(ys, list) else [ys]


def results(pack, entry, dtype, xs, ys):
    """Compare outputs and written inputs with MXNet's."""
    run = entry["runs"][dtype]
    if "moments" in run:
        check_moments(entry, ys, run["moments"])
        return
    assert len(ys) == len(run["out"])
    for i, (y, want, t) in enumerate(zip(ys, run["out"], run["out_dtypes"])):
        assert np.dtype(y.dtype) == t, (
            f"{entry['op']} #{entry['number']}: output {i} is {np.dtype(y.dtype)}, in MXNet {t}"
        )
        check(y.asnumpy(), pack.get(want), dtype, entry, f"output {i}")
    for i, want in zip(entry["mutates"], run["written"]):
        check(xs[i].asnumpy(), pack.get(want), dtype, entry, f"input {i} afterwards")


@pytest.mark.parametrize("pack, samples", by_operator())
def test_eager(pack, samples):
    for entry in samples:
        op = tables.ops.get(entry["op"])
        done = set()
        for dtype, reqs, grads in ways(pack, entry):
            xs, ys = record(op, pack, entry, dtype, entry["grad_train"], reqs)
            flowing = [(y, g) for y, g in zip(ys, heads(entry, ys)) if flows(y)]
            mx.autograd.backward([y for y, _ in flowing], [g for _, g in flowing], train_mode=entry["grad_train"])
            for i, (x, g) in enumerate(zip(xs, grads)):
                if g is not None:
                    check(x.grad.asnumpy(), g, dtype, entry, f"gradient {i} with grad_req {reqs}")
            if entry["train"] == entry["grad_train"] and dtype not in done:
                done.add(dtype)
                results(pack, entry, dtype, xs, ys)
        for dtype in entry["runs"]:
            if dtype not in done:
                results(pack, entry, dtype, *record(op, pack, entry, dtype, entry["train"]))


def check_moments(entry, ys, moments):
    """Random numbers have the mean and the variance of MXNet's."""
    for y, (n, mean, var, shape, dtype) in zip(ys, moments):
        assert list(y.shape) == shape and str(np.dtype(y.dtype)) == dtype
        if n >= 100:
            a = y.asnumpy().astype(np.float64)
            assert abs(a.mean() - mean) <= 6 * np.sqrt(2 * var / n), f"{entry['op']}: mean {a.mean()}, MXNet {mean}"
            fourth = ((a - a.mean()) ** 4).mean()
            spread = np.sqrt(2 * max(fourth - a.var() ** 2, a.var() ** 2) / n)
            assert abs(a.var() - var) <= 6 * spread, f"{entry['op']}: variance {a.var()}, MXNet {var}"


@pytest.mark.parametrize("pack, samples", by_operator())
def test_graph(pack, samples):
    for entry in samples:
        if not any(0 in pack.get(i).shape for i in entry["inputs"]):
            # A graph has gradients in training mode only.
            for dtype, reqs, grads in ways(pack, entry) if entry["grad_train"] else ():
                in_graph(pack, entry, dtype, reqs, grads)
            for dtype, run in entry["runs"].items():
                if "moments" not in run and not ("grads" in run and entry["grad_train"] and entry["train"]):
                    in_graph(pack, entry, dtype, ["null"] * len(entry["inputs"]), ())


def in_graph(pack, entry, dtype, reqs, grads):
    """One sample through a symbol and an executor."""
    op = tables.ops.get(entry["op"])
    run = entry["runs"][dtype]
    xs = inputs(pack, entry, dtype)
    names = [f"in{i}" for i in range(len(xs))]
    symbol = mx.sym.compose(op.name, [mx.sym.Variable(n) for n in names], {**entry["params"], "name": "node"}, op)
    if not len(symbol):
        return
    args = dict(zip(names, xs))
    aux = {n: args.pop(n) for n in symbol.list_auxiliary_states()}
    asked = {n: req for n, req in zip(names, reqs) if n in args}
    starts = zip(names, drawn(13, [x.shape for x in xs]))
    room = {
        n: mx.nd.array(start if asked[n] == "add" else 0 * start, dtype=args[n].dtype)
        for n, start in starts
        if asked.get(n, "null") != "null"
    }
    bound = symbol.bind(mx.cpu(), args, args_grad=room or None, grad_req=asked, aux_states=aux)
    mx.random.seed(7)
    train = bool(grads) or entry["train"]
    ys = bound.forward(is_train=train)
    if grads:
        bound.backward(heads(entry, ys))
        for n, g in zip(names, grads):
            if n in room:
                check(room[n].asnumpy(), g, dtype, entry, f"gradient of {n} with grad_req {reqs} in a graph")
    if train == entry["train"]:
        for i, (y, want) in enumerate(zip(ys, run["out"])):
            check(y.asnumpy(), pack.get(want), dtype, entry, f"output {i} in a graph")
        for i, want in zip(entry["mutates"], run["written"]):
            check(
                {**args, **aux}[names[i]].asnumpy(), pack.get(want), dtype, entry, f"input {i} afterwards, in a graph"
            )


def test_every_sample_has_golden_numbers_or_a_reason():
    found = stale(catalogue(), files())
    lines = [f"  {m}: {', '.join(whys[:3])}{', …' if len(whys) > 3 else ''}" for m, whys in found.items()]
    assert not found, "run python tools/make_golden.py; it has to ask MXNet about:\n" + "\n".join(lines)
    for pack in files().values():
        for e in pack.entries:
            assert len(e["skip"]) > 3 or {*e["runs"], *e.get("failed", {})} == {*e["dtypes"]}, (
                f"{e['op']} #{e['number']}"
            )


@pytest.mark.parametrize("family", ["detection", "quantization"])
def test_samples_are_as_mxnet_wants_them(family):
    """What it refuses is compared with nothing, so these samples have to say beforehand why it would."""
    failed = {(e["op"], e["number"]): e["failed"] for e in files()[family].entries if "failed" in e}
    assert not {k: v for k, v in failed.items() if not all("Unsupported data type" in line for line in v.values())}


def test_a_changed_sample_is_found():
    def pack(**more):
        found = Pack()
        found.entries = [
            {
                "family": "m",
                "op": "f",
                "number": 0,
                "skip": "",
                **dict.fromkeys(ASKED),
                "inputs": [found.add(np.arange(3.0))],
                **more,
            }
        ]
        return found

    assert stale(pack(), {"m": pack()}) == {}
    assert stale(pack(), {}) == {"m": ["f #0: has no answer"]}
    assert stale(pack(number=1), {"m": pack()}) == {"m": ["f #1: has no answer", "f #0: there is no such sample"]}
    assert stale(pack(), {"m": pack(skip="why")}) == {"m": ["f #0: skip is '', was 'why'"]}
    assert stale(pack(params={"a": "1"}), {"m": pack(params={"a": "2"})}) == {
        "m": ["f #0: params is {'a': '1'}, was {'a': '2'}"]
    }
    other = pack()
    other.entries[0]["inputs"] = [other.add(np.arange(3.0) + 1)]
    assert stale(other, {"m": pack()}) == {"m": ["f #0: its inputs are others"]}


def test_every_gradient_is_added_somewhere():
    """Each operator with gradients has a run with grad_req 'add', and some with 'null', unless MXNet refuses it."""
    for m, pack in files().items():
        found = {}
        for e in pack.entries:
            if any("grads" in run for run in e.get("runs", {}).values()) and not e["random"]:
                found.setdefault(e["op"], []).extend(e.get("more", ()))
        assert all(found.values()), (m, [op for op, more in found.items() if not more])


def test_what_is_odd_in_mxnet_is_so():
    found = set()
    for pack in files().values():
        for e in pack.entries:
            for more in e.get("more", ()):
                if "grads" in more:
                    pairs = [(pack.get(g), d) for g, d in zip(more["grads"], due(pack, e, more)) if g is not None]
                    found |= (
                        {e["op"]} if any(not np.allclose(a, b, 1e-3, 1e-3, equal_nan=True) for a, b in pairs) else set()
                    )
    assert found == set(ODD)


def test_the_files_are_small():
    assert sum(p.stat().st_size for p in DATA.glob("*.npz")) < 3_000_000
