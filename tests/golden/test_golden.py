"""Every operator gives what the real MXNet 1.9.1 gave: outputs, written inputs and gradients, eager and in a graph.

The files in ``data/`` are made by ``make_golden.py``; they hold inputs and parameters too. Tolerances are
`mxcore.testing.tolerance.GOLDEN`, widened by a sample's own factor.
"""
import functools
import pathlib

import numpy as np
import pytest

import mxcore as mx
from mxcore._core import registry
from mxcore.testing.catalogue import modules
from mxcore.testing.pack import Pack
from mxcore.testing.tolerance import GOLDEN, compare

_ = mx.nd  # arrays have their public face from here on
DATA = pathlib.Path(__file__).resolve().parent / "data"


@functools.cache
def files():
    """Module -> its golden file."""
    return {p.stem: Pack.load(str(p)) for p in sorted(DATA.glob("*.npz")) if "index" in np.load(p).files}


def entries():
    """(module, entry) of everything that MXNet ran."""
    return [(m, e) for m, pack in files().items() for e in pack.entries if not e["skip"]]


def by_operator():
    """A test per operator."""
    found = {}
    for m, e in entries():
        found.setdefault((m, e["op"]), []).append(e)
    return [pytest.param(files()[m], es, id=f"{m}-{op}") for (m, op), es in found.items()]


def head_grads(outputs):
    """The head gradients that `make_golden.py` drew."""
    rs = np.random.RandomState(11)
    return [np.round(rs.uniform(-1, 1, y.shape) * 256) / 256 for y in outputs]


def inputs(pack, entry, dtype):
    """Arrays of one entry."""
    return [mx.nd.array(pack.get(i), dtype=t) for i, t in zip(entry["inputs"], entry["dtypes"][dtype])]


def check(got, want, dtype, entry, what):
    """Compare with MXNet's number."""
    compare(got, want, dtype, f"{entry['op']} #{entry['number']} {dtype}, {what}", entry["tol"], GOLDEN)


def flows(y):
    """Whether an output takes part in gradients."""
    return np.dtype(y.dtype).kind == "f"


def record(op, pack, entry, dtype, train, grads=()):
    """(inputs, outputs) of a recorded call; the inputs that MXNet gave gradients for are variables."""
    xs = inputs(pack, entry, dtype)
    for x, g in zip(xs, grads):
        if g is not None:
            x.attach_grad()
    mx.random.seed(7)
    with mx.autograd.record(train):
        ys = op(*xs, **entry["params"])
    return xs, ys if isinstance(ys, list) else [ys]


@pytest.mark.parametrize("pack, samples", by_operator())
def test_eager(pack, samples):
    for entry in samples:
        op = registry.ops.get(entry["op"])
        for dtype, run in entry["runs"].items():
            grads = run.get("grads") or ()
            xs, ys = record(op, pack, entry, dtype, entry["grad_train"] if grads else entry["train"], grads)
            if grads:
                heads = [(y, mx.nd.array(g, dtype=y.dtype)) for y, g in zip(ys, head_grads(ys)) if flows(y)]
                mx.autograd.backward([y for y, _ in heads], [g for _, g in heads], train_mode=entry["grad_train"])
                for i, (x, g) in enumerate(zip(xs, grads)):
                    if g is not None:
                        check(x.grad.asnumpy(), pack.get(g), dtype, entry, f"gradient {i}")
                if entry["train"] != entry["grad_train"]:
                    xs, ys = record(op, pack, entry, dtype, entry["train"])
            if "moments" in run:
                check_moments(entry, ys, run["moments"])
                continue
            assert len(ys) == len(run["out"])
            for i, (y, want, t) in enumerate(zip(ys, run["out"], run["out_dtypes"])):
                assert np.dtype(y.dtype) == t, f"{entry['op']} #{entry['number']}: output {i} is {np.dtype(y.dtype)}, in MXNet {t}"
                check(y.asnumpy(), pack.get(want), dtype, entry, f"output {i}")
            for i, want in zip(entry["mutates"], run["written"]):
                check(xs[i].asnumpy(), pack.get(want), dtype, entry, f"input {i} afterwards")


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
        for dtype, run in entry["runs"].items():
            if "moments" not in run and 0 not in [d for i in entry["inputs"] for d in pack.get(i).shape]:
                in_graph(pack, entry, dtype, run)


def in_graph(pack, entry, dtype, run):
    """One sample through a symbol and an executor."""
    op = registry.ops.get(entry["op"])
    xs = inputs(pack, entry, dtype)
    names = [f"in{i}" for i in range(len(xs))]
    symbol = mx.sym.compose(op.name, [mx.sym.Variable(n) for n in names], {**entry["params"], "name": "node"}, op)
    if not len(symbol):
        return
    args = dict(zip(names, xs))
    aux = {n: args.pop(n) for n in symbol.list_auxiliary_states()}
    grads = {n: g for n, g in zip(names, run.get("grads") or []) if g is not None and n in args}
    room = {n: mx.nd.zeros(args[n].shape, dtype=args[n].dtype) for n in grads}
    bound = symbol.bind(mx.cpu(), args, args_grad=room or None, grad_req={n: "write" if n in grads else "null" for n in args}, aux_states=aux)
    mx.random.seed(7)
    ys = bound.forward(is_train=entry["train"])
    for i, (y, want) in enumerate(zip(ys, run["out"])):
        check(y.asnumpy(), pack.get(want), dtype, entry, f"output {i} in a graph")
    if grads and entry["grad_train"]:  # a graph has gradients in training mode only
        if not entry["train"]:
            mx.random.seed(7)
            ys = bound.forward(is_train=True)
        bound.backward([mx.nd.array(g, dtype=y.dtype) for y, g in zip(ys, head_grads(ys))])
        for n, g in grads.items():
            check(room[n].asnumpy(), pack.get(g), dtype, entry, f"gradient of {n} in a graph")
    if not grads or entry["train"]:
        for i, want in zip(entry["mutates"], run["written"]):
            check({**args, **aux}[names[i]].asnumpy(), pack.get(want), dtype, entry, f"input {i} afterwards, in a graph")


def test_every_operator_has_golden_numbers_or_a_reason():
    known = {e["op"] for pack in files().values() for e in pack.entries}
    missing = sorted(op.name for _, op in modules() if op.samples and op.name not in known and any(s.mxnet is True for s in op.samples))
    assert not missing, f"run make_golden.py for: {', '.join(missing)}"


def test_skipped_samples_have_reasons():
    for pack in files().values():
        for e in pack.entries:
            assert not e["skip"] or len(e["skip"]) > 3
            assert e["skip"] or e["runs"]


def test_the_files_are_small():
    assert sum(p.stat().st_size for p in DATA.glob("*.npz")) < 3_000_000
