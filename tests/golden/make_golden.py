"""Run the catalogue of samples in the real MXNet 1.9.1 and keep what it says: outputs, written inputs, gradients.

``tools/make_golden.py`` runs it in MXNet's own environment, as::

    python tests/golden/make_golden.py samples.npz [MODULE ...]

Each family of operators (all in the samples unless told) gets a file in ``data/``. What MXNet cannot run is kept there
with its reason.
"""

import ctypes
import importlib.util
import os
import pathlib
import re
import sys

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")  # every operator runs in a forked process

import mxnet as mx
import numpy as np
from apart import apart
from mxnet._ctypes.ndarray import _imperative_invoke
from mxnet.base import _LIB, c_str

HERE = pathlib.Path(__file__).resolve().parent
PACK = HERE.parents[1] / "core" / "mxcore" / "testing" / "pack.py"


def load():
    """The module ``pack``, without mxcore around it."""
    spec = importlib.util.spec_from_file_location("pack", PACK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_pack = load()
Pack, ASKED, drawn = _pack.Pack, _pack.ASKED, _pack.drawn


def load_pack():
    """The class Pack."""
    return Pack


def operator(name):
    """MXNet's handle of an operator."""
    handle = ctypes.c_void_p()
    if _LIB.NNGetOpHandle(c_str(name), ctypes.byref(handle)):
        raise KeyError("MXNet has no operator of this name")
    return handle.value


def call(entry, arrays, out):
    """Call the operator; a list of its visible outputs."""
    keys = list(entry["params"])
    got = _imperative_invoke(operator(entry["op"]), arrays, keys, [entry["params"][k] for k in keys], out, False, True)
    return list(got) if isinstance(got, (list, tuple)) else [got]


def inputs(entry, pack, dtype):
    """New arrays of one sample."""
    return [
        mx.nd.array(a if a.shape or entry["np_shape"] else a.reshape(1), dtype=t)
        for a, t in zip(map(pack.get, entry["inputs"]), entry["dtypes"][dtype])
    ]


def forward(entry, arrays, dtype, train):
    """Record the operator; its visible outputs."""
    mx.random.seed(7)
    with mx.autograd.record(train):
        try:
            return call(entry, arrays, None if entry["in_place"] is None else [arrays[entry["in_place"]]])
        except mx.MXNetError:  # some updates cannot do without a place for the new weight
            if entry["variables"] or None in entry["shapes"]:
                raise
            return call(entry, arrays, [mx.nd.zeros(s, dtype=t) for s, t in zip(entry["shapes"], entry["outs"][dtype])])


def differentiated(entry, pack, dtype, reqs):
    """(inputs, outputs, gradients or why there are none) of one sample; a gradient is None where grad_req is 'null'."""
    arrays = inputs(entry, pack, dtype)
    for x, req, start in zip(arrays, reqs, drawn(13, [x.shape for x in arrays])):
        if req != "null":
            x.attach_grad(req, "row_sparse" if entry["params"].get("sparse_grad") in ("True", "1") else None)
            if req == "add":
                x.grad[:] = mx.nd.array(start, dtype=x.dtype)
    outputs = forward(entry, arrays, dtype, entry["grad_train"])
    found = [y.asnumpy() for y in outputs]
    heads = [(y, g) for y, g in zip(outputs, drawn(11, [y.shape for y in outputs])) if np.dtype(y.dtype).kind == "f"]
    try:
        mx.autograd.backward(
            [y for y, _ in heads], [mx.nd.array(g, dtype=y.dtype) for y, g in heads], train_mode=entry["grad_train"]
        )
        return arrays, found, [None if req == "null" else x.grad.asnumpy() for x, req in zip(arrays, reqs)]
    except mx.MXNetError as e:
        return arrays, found, first_line(e)


def choices(entry, pack, dtype):
    """Lists of grad_req to try: for all inputs that may be variables, then for those MXNet differentiates alone."""
    found = [
        [
            "write" if wants and np.dtype(t).kind == "f" else "null"
            for wants, t in zip(variables, entry["dtypes"][dtype])
        ]
        for variables in entry["variables"]
    ]
    found = [reqs for reqs in found if "write" in reqs]
    yield from found
    alone = [
        ["write" if i == j else "null" for i in range(len(reqs))]
        for reqs in found[:1]
        for j, req in enumerate(reqs)
        if req == "write"
    ]
    good = [
        reqs for reqs in alone if len(alone) > 1 and not isinstance(differentiated(entry, pack, dtype, reqs)[2], str)
    ]
    if good:
        yield ["write" if "write" in reqs else "null" for reqs in zip(*good)]


def run(entry, pack, dtype):
    """What MXNet gives for one sample in one dtype: outputs, written inputs, gradients (None where there is none)."""
    found = {}
    for reqs in choices(entry, pack, dtype):
        arrays, found["out"], found["grads"] = differentiated(entry, pack, dtype, reqs)
        if not isinstance(found["grads"], str):
            break
    if "out" not in found or entry["train"] != entry["grad_train"]:
        arrays = inputs(entry, pack, dtype)
        found["out"] = [y.asnumpy() for y in forward(entry, arrays, dtype, entry["train"])]
    found["written"] = [arrays[i].asnumpy() for i in entry["mutates"]]
    return found


def first_line(e):
    """The telling line of an error of MXNet's."""
    lines = [s.strip() for s in str(e).splitlines() if s.strip() and "Traceback" not in s and "File " not in s]
    return re.sub(r"\[[0-9:]+\] ", "", lines[0] if lines else type(e).__name__)[:160]  # without the time


def moments(values):
    """Count, mean and variance of random outputs."""
    return [
        [
            int(v.size),
            float(v.mean(dtype=np.float64)) if v.size else 0.0,
            float(v.var(dtype=np.float64)) if v.size else 0.0,
            list(v.shape),
            str(v.dtype),
        ]
        for v in values
    ]


def answer(samples, entry, dtype, reqs=()):
    """What MXNet gives for a sample in a dtype, or the line of an error; with `reqs`, gradients for these grad_req."""
    try:
        # Elsewhere a zero in a shape means that it is unknown, and there are no scalars.
        with mx.util.np_shape(entry["np_shape"]):
            return {"grads": differentiated(entry, samples, dtype, reqs)[2]} if reqs else run(entry, samples, dtype)
    except Exception as e:  # MXNet's own limits; the reason is kept
        return first_line(e)


def without_onednn(*job):
    """The same, with MXNet's own kernels; of use in a new process only."""
    os.environ["MXNET_MKLDNN_ENABLED"] = "0"
    return answer(*job)


def failed(found):
    """0 if nothing did, 1 if the gradient failed, 2 if there is no answer."""
    return 2 if isinstance(found, str) else isinstance(found.get("grads"), str)


def answers(jobs):
    """What MXNet gives for these arguments of `answer`; where it fails, what it gives without oneDNN."""
    found = apart(answer, jobs)
    second = [i for i, f in enumerate(found) if failed(f)]
    for i, other in zip(second, apart(without_onednn, [jobs[i] for i in second])):
        found[i] = min(found[i], other, key=failed)
    return found


def requests(entries, results):
    """(position, dtype, list of grad_req) of further runs, over the samples of an operator.

    All 'add' first, then 'null' for each input in turn.
    """
    found = []
    for i, (entry, runs) in enumerate(zip(entries, results)):
        dtypes = [t for t, r in runs.items() if isinstance(r, dict) and isinstance(r.get("grads"), list)]
        if dtypes and not entry["random"]:
            dtype = "float32" if "float32" in dtypes else dtypes[0]
            found.append((i, dtype, [g is not None for g in runs[dtype]["grads"]]))
    for turn, (i, dtype, wants) in enumerate(found):
        plans = [["add" if w else "null" for w in wants]]
        if sum(wants) > 1:
            plans += [
                ["null" if not w or j == off else ("add", "write")[(j + off) % 2] for j, w in enumerate(wants)]
                for off in range(len(wants))
                if wants[off]
            ]
        yield from ((i, dtype, reqs) for reqs in plans[turn :: len(found)])


def keep(pack, kept, entry, runs):
    """Enter the results of one sample in the file of its family."""
    for dtype, found in runs.items():
        if isinstance(found, str):
            kept.setdefault("failed", {})[dtype] = found
        elif entry["random"]:
            kept["runs"][dtype] = {"moments": moments(found["out"])}
        else:
            new = kept["runs"][dtype] = {
                "out": [pack.add(v) for v in found["out"]],
                "written": [pack.add(v) for v in found["written"]],
                "out_dtypes": [str(v.dtype) for v in found["out"]],
            }
            if isinstance(found.get("grads"), list):
                new["grads"] = gradients(pack, found["grads"])
            elif "grads" in found:
                new["no_grads"] = found["grads"]


def gradients(pack, values):
    """Numbers of gradients in a pack; None stays."""
    return [None if g is None else pack.add(g) for g in values]


def enter(pack, samples, entries):
    """Run the samples of one operator and enter what MXNet says in the file of its family."""
    runnable = [e for e in entries if not e["skip"]]
    found = iter(answers([(samples, e, t) for e in runnable for t in e["dtypes"]]))
    results = [{t: next(found) for t in e["dtypes"]} for e in runnable]
    more = [[] for _ in runnable]
    asked = list(requests(runnable, results))
    for (i, dtype, reqs), new in zip(asked, answers([(samples, runnable[i], *rest) for i, *rest in asked])):
        more[i].append(
            {
                "dtype": dtype,
                "reqs": reqs,
                **(
                    {"grads": gradients(pack, new["grads"])}
                    if not failed(new)
                    else {"failed": new if isinstance(new, str) else new["grads"]}
                ),
            }
        )
    found = iter(zip(results, more))
    for entry in entries:
        new = {k: entry[k] for k in ("op", "number", "skip")}
        pack.entries.append(new)
        if not entry["skip"]:
            runs, others = next(found)
            new.update(
                {k: entry[k] for k in ASKED}, inputs=[pack.add(samples.get(i)) for i in entry["inputs"]], runs={}
            )
            keep(pack, new, entry, runs)
            if others:
                new["more"] = others
        for dtype, reason in new.get("failed", {}).items():
            print(f"{entry['op']} #{entry['number']} {dtype}: {reason}")


def main(path, *families):
    """Write the golden files of families, all unless told, in a catalogue."""
    samples, operators = Pack.load(path), {}
    for entry in samples.entries:
        operators.setdefault((entry["family"], entry["op"]), []).append(entry)
    files = {f: Pack() for f in families or dict.fromkeys(f for f, _ in operators)}
    for (family, _), entries in operators.items():
        if family in files:
            enter(files[family], samples, entries)
    (HERE / "data").mkdir(exist_ok=True)
    for name, pack in sorted(files.items()):
        file = HERE / "data" / f"{name}.npz"
        pack.save(str(file))
        print(f"{file.name}: {len(pack.entries)} samples, {file.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
