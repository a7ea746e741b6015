"""Run the catalogue of samples in the real MXNet 1.9.1 and keep what it says: outputs, written inputs, gradients.

Two commands, the first in mxcore's environment, the second in MXNet's own::

    python -m mxcore.testing.catalogue --out samples.npz
    python tests/golden/make_golden.py samples.npz

Each module of operators in the samples gets a file in ``data/``; others stay (``--modules rnn norm`` of the first command chooses). What MXNet cannot run is kept there with its reason.
"""
import ctypes
import importlib.util
import os
import pathlib
import pickle
import sys

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")  # every operator runs in a forked process

import mxnet as mx
import numpy as np
from mxnet._ctypes.ndarray import _imperative_invoke
from mxnet.base import _LIB, c_str

HERE = pathlib.Path(__file__).resolve().parent
PACK = HERE.parents[1] / "core" / "mxcore" / "testing" / "pack.py"


def load_pack():
    """The class Pack, without mxcore around it."""
    spec = importlib.util.spec_from_file_location("pack", PACK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Pack


def operator(name):
    """MXNet's handle of an operator."""
    handle = ctypes.c_void_p()
    if _LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)):
        raise KeyError("MXNet has no operator of this name")
    return handle.value


def head_grads(outputs):
    """Random head gradients on a grid of 1/256, the same as the tests draw."""
    rs = np.random.RandomState(11)
    return [np.round(rs.uniform(-1, 1, y.shape) * 256) / 256 for y in outputs]


def call(entry, arrays, out):
    """Call the operator; a list of its visible outputs."""
    keys = list(entry["params"])
    got = _imperative_invoke(operator(entry["op"]), arrays, keys, [entry["params"][k] for k in keys], out, False, True)
    return list(got) if isinstance(got, (list, tuple)) else [got]


def inputs(entry, pack, dtype):
    """New arrays of one sample."""
    return [mx.nd.array(pack.get(i), dtype=t) if pack.get(i).shape else mx.nd.array(pack.get(i).reshape(1), dtype=t)
            for i, t in zip(entry["inputs"], entry["dtypes"][dtype])]


def forward(entry, arrays, dtype, train):
    """Record the operator; its visible outputs."""
    mx.random.seed(7)
    with mx.autograd.record(train):
        try:
            return call(entry, arrays, None if entry["in_place"] is None else [arrays[entry["in_place"]]])
        except mx.MXNetError:  # some updates cannot do without a place for the new weight
            if entry["gradient"] or None in entry["shapes"]:
                raise
            return call(entry, arrays, [mx.nd.zeros(s, dtype=t) for s, t in zip(entry["shapes"], entry["outs"][dtype])])


def run(entry, pack, dtype):
    """What MXNet gives for one sample in one dtype: outputs, written inputs, gradients (None where there is none)."""
    found = {"grads": None}
    for variables in entry["variables"] if entry["gradient"] else ():
        arrays = inputs(entry, pack, dtype)
        for x, wants in zip(arrays, variables):
            if wants:
                x.attach_grad()
        outputs = forward(entry, arrays, dtype, entry["grad_train"])
        found["out"] = [y.asnumpy() for y in outputs]
        heads = [(y, g) for y, g in zip(outputs, head_grads(found["out"])) if np.dtype(y.dtype).kind == "f"]
        try:
            mx.autograd.backward([y for y, _ in heads], [mx.nd.array(g, dtype=y.dtype) for y, g in heads],
                                 train_mode=entry["grad_train"])
            found["grads"] = [x.grad.asnumpy() if w else None for x, w in zip(arrays, variables)]
            break
        except mx.MXNetError as e:
            found["no_grads"] = first_line(e)
    if not entry["gradient"] or entry["train"] != entry["grad_train"]:
        arrays = inputs(entry, pack, dtype)
        found["out"] = [y.asnumpy() for y in forward(entry, arrays, dtype, entry["train"])]
    found["written"] = [arrays[i].asnumpy() for i in entry["mutates"]]
    return found


def first_line(e):
    """The telling line of an error of MXNet's."""
    lines = [s.strip() for s in str(e).splitlines() if s.strip() and "Traceback" not in s and "File " not in s]
    return (lines[0] if lines else type(e).__name__)[:160]


def moments(values):
    """Count, mean and variance of random outputs."""
    return [[int(v.size), float(v.mean(dtype=np.float64)) if v.size else 0.0, float(v.var(dtype=np.float64)) if v.size else 0.0,
             list(v.shape), str(v.dtype)] for v in values]


def tried(samples, entries):
    """What MXNet gives for the samples of one operator: a list of {dtype: result or the line of an error}."""
    found = []
    for entry in entries:
        runs = {}
        for dtype in entry["dtypes"]:
            try:
                # Elsewhere a zero in a shape means that it is unknown.
                with mx.util.np_shape(any(0 in samples.get(i).shape for i in entry["inputs"])):
                    runs[dtype] = run(entry, samples, dtype)
            except Exception as e:  # MXNet's own limits; the reason is kept
                runs[dtype] = first_line(e)
        found.append(runs)
    return found


def in_child(samples, entries):
    """The same in a process of its own, since MXNet may abort."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(tried(samples, entries), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if data:
        return pickle.loads(data)
    if len(entries) > 1:
        return [found for e in entries for found in in_child(samples, [e])]
    return [dict.fromkeys(entries[0]["dtypes"], "the process aborts")]


def keep(pack, kept, entry, runs):
    """Enter the results of one sample in the file of its module."""
    for dtype, found in runs.items():
        if isinstance(found, str):
            kept.setdefault("failed", {})[dtype] = found
        elif entry["random"]:
            kept.setdefault("runs", {})[dtype] = {"moments": moments(found["out"])}
        else:
            new = kept.setdefault("runs", {})[dtype] = {
                "out": [pack.add(v) for v in found["out"]], "written": [pack.add(v) for v in found["written"]],
                "out_dtypes": [str(v.dtype) for v in found["out"]]}
            if found["grads"] is not None:
                new["grads"] = [None if g is None else pack.add(g) for g in found["grads"]]
            elif entry["gradient"]:
                new["no_grads"] = found["no_grads"]
    if "runs" in kept:
        kept.update({k: entry[k] for k in ("params", "dtypes", "train", "grad_train", "tol", "mutates")}, inputs=entry["inputs"])
    else:
        kept["skip"] = "MXNet 1.9.1 cannot: " + "; ".join(sorted(set(kept["failed"].values())))


def main(path):
    """Write the golden files of all modules in a catalogue."""
    Pack = load_pack()
    samples, files, operators = Pack.load(path), {}, {}
    for entry in samples.entries:
        operators.setdefault(entry["op"], []).append(entry)
    for entries in operators.values():
        runnable = [e for e in entries if not e["skip"]]
        results = iter(in_child(samples, runnable) if runnable else [])
        for entry in entries:
            pack = files.setdefault(entry["module"], Pack())
            kept = {k: entry[k] for k in ("op", "number", "skip")}
            pack.entries.append(kept)
            if not entry["skip"]:
                keep(pack, kept, entry, next(results))
                if "inputs" in kept:
                    kept["inputs"] = [pack.add(samples.get(i)) for i in kept["inputs"]]
            for dtype, reason in kept.get("failed", {}).items():
                print(f"{entry['op']} #{entry['number']} {dtype}: {reason}")
    (HERE / "data").mkdir(exist_ok=True)
    for name, pack in sorted(files.items()):
        file = HERE / "data" / f"{name}.npz"
        pack.save(str(file))
        print(f"{file.name}: {len(pack.entries)} samples, {file.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
