"""Ask the real MXNet 1.9.1 what its operators are called, what they take and give, and keep the answers.

``tools/make_golden.py`` runs it in MXNet's own environment, as::

    python tests/golden/make_operator_facts.py samples.npz

``data/operators.json`` then holds one row per operator that mxcore has too::

    name: {"aliases": [...], "inputs": [...], "variadic": counting parameter or null, "params": [[name, type in MXNet's
    words], ...],
           "given": [[parameters, arguments, auxiliary states, outputs], ...], "gradient": "yes", "zero", "none" or
           null}

``given`` has one line for each set of names that the parameters of the samples select; ``gradient`` is what a bound
symbol of the first sample that MXNet can bind says (null: MXNet cannot tell). The other operators that MXNet shows are
listed by name under ``others``.
"""

import ctypes
import json
import os
import pathlib
import pickle
import sys

os.environ.setdefault("MXNET_ENGINE_TYPE", "NaiveEngine")  # every operator runs in a forked process
os.environ.setdefault("MXNET_SUBGRAPH_BACKEND", "NONE")  # graphs as they are declared

import mxnet as mx
from make_golden import load_pack, operator
from mxnet._ctypes.symbol import _symbol_creator
from mxnet.base import _LIB, check_call, py_str
from mxnet.operator import get_all_registered_operators

HERE = pathlib.Path(__file__).resolve().parent
#: What MXNet's graphs have in place of a gradient that is zero.
ZEROS = {"zeros_like", "_zeros", "_zeros_without_dtype"}


def described(handle):
    """(main name, [(argument, type)], counting parameter or None) of an operator."""
    name, about, count, result = (ctypes.c_char_p() for _ in range(4))
    n = ctypes.c_uint()
    names, types, texts = (ctypes.POINTER(ctypes.c_char_p)() for _ in range(3))
    check_call(
        _LIB.MXSymbolGetAtomicSymbolInfo(
            ctypes.c_void_p(handle), *map(ctypes.byref, (name, about, n, names, types, texts, count, result))
        )
    )
    found = [(py_str(names[i]), py_str(types[i])) for i in range(n.value)]
    return py_str(name.value), found, py_str(count.value) or None


def is_input(kind):
    """Whether a type is that of an array."""
    return kind.split(",")[0].rstrip("[]") in ("NDArray", "NDArray-or-Symbol", "Symbol", "Symbol or Symbol")


def row(handle, aliases):
    """What MXNet says about an operator without running it."""
    name, arguments, count = described(handle)
    found = {
        "aliases": sorted(a for a in aliases if a != name),
        "inputs": [n for n, t in arguments if is_input(t) and not _graph(name, n)],
        "variadic": count,
        "params": [[n, t] for n, t in arguments if not is_input(t) or _graph(name, n)],
    }
    return name, found


def _graph(op, argument):
    """The sub-graphs of control flow are of the type of inputs, but parameters of ours."""
    return op in ("_foreach", "_while_loop", "_cond") and argument != "data"


def symbol(name, params, variables=()):
    """An operator over variables; it names itself those that are not given."""
    return _symbol_creator(operator(name), list(variables), {}, list(params), list(params.values()), "op", False)


def given(name, entries):
    """The names that the parameters of the samples select, each choice once."""
    found, seen = [], set()
    for entry in entries:
        s = symbol(name, entry["params"])
        lists = [
            [n[3:] if n.startswith("op_") else n for n in part]
            for part in (s.list_arguments(), s.list_auxiliary_states(), s.list_outputs())
        ]
        if str(lists) not in seen:
            seen.add(str(lists))
            found.append([entry["params"], *lists])
    return found


def gradient(name, entry, pack):
    """'yes', 'zero' or 'none'; raises what MXNet raises where it cannot bind the sample."""
    names = [f"in{i}" for i in range(len(entry["inputs"]))]
    s = symbol(name, entry["params"], map(mx.sym.Variable, names))
    dtype = next(iter(entry["dtypes"]))
    shapes = dict(zip(names, (pack.get(i).shape for i in entry["inputs"])))
    aux = set(s.list_auxiliary_states())
    try:
        bound = s.simple_bind(
            mx.cpu(),
            "write",
            type_dict={n: t for n, t in zip(names, entry["dtypes"][dtype]) if n not in aux},
            **{n: v for n, v in shapes.items() if n not in aux},
        )
    except (mx.MXNetError, RuntimeError) as e:
        if "non-differentiable" in str(e):
            return "none"
        raise
    ops, heads, last = {}, [], None
    for line in bound.debug_str().splitlines():
        if line.startswith("Op:"):
            last, _, node = line[3:].partition(", Name=")
            ops[node] = last
        elif line.strip().startswith("output["):
            heads.append(line.partition("=")[2].rpartition("(")[0])
    backward = [ops.get(n, "") for n in heads[len(s.list_outputs()) :]]
    return "yes" if any(op and op not in ZEROS for op in backward) else "zero"


def asked(name, entries, pack):
    """(choices of names, gradient) of an operator from its samples."""
    runnable = [e for e in entries if not e["skip"]]
    found = []
    for e in runnable:
        try:
            found += [x for x in given(name, [e]) if x[1:] not in [y[1:] for y in found]]
        except mx.MXNetError:
            continue
    slope = None
    for e in runnable:
        if e["inputs"] and slope is None:
            try:
                slope = gradient(name, e, pack)
            except (mx.MXNetError, RuntimeError):
                continue
    return found, slope


def in_child(name, entries, pack):
    """The same in a process of its own, since MXNet may abort."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(asked(name, entries, pack), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else ([], None)


def main(path):
    """Write the table of the operators in a catalogue."""
    pack, samples = load_pack().load(path), {}
    for entry in pack.entries:
        samples.setdefault(entry["op"], []).append(entry)
    handles = {}
    for name in get_all_registered_operators():
        handles.setdefault(operator(name), []).append(name)
    facts, others = {}, []
    for handle, names in sorted(handles.items(), key=lambda item: min(item[1])):
        name, found = row(handle, names)
        mine = [n for n in names if n in samples]
        if not mine:
            others += names
            continue
        found["given"], found["gradient"] = in_child(name, [e for n in mine for e in samples[n]], pack)
        facts[name] = found
    file = HERE / "data" / "operators.json"
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(f, separators=(',', ':'))}" for n, f in sorted(facts.items()))
    file.write_text('{"operators": {\n' + lines + '\n},\n"others": ' + json.dumps(sorted(others)) + "}\n")
    print(f"{file.name}: {len(facts)} operators, {len(others)} other names, {file.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
