"""Write how MXNet 1.9.1 saves graphs: those of ``symbol_cases.py``, and every operator as the catalogue has it.

``tools/make_golden.py`` runs it in MXNet's own environment, as::

    python tests/golden/make_symbol_golden.py samples.npz

The file ``data/scripts/symbols.npz`` holds texts only.
"""

import pathlib
import sys

import mxnet as mx
import symbol_cases
from make_golden import load_pack, operator
from mxnet._ctypes.symbol import _symbol_creator

OUT = pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "symbols.npz"
#: MXNet cannot compose these, or ends the process.
BROKEN = {"multi_sgd_mom_update", "preloaded_multi_sgd_mom_update", "reset_arrays"}
#: What MXNet calls inputs of these that are left out: one name for several inputs, or names that nothing else uses.
UNNAMED = {
    "multi_all_finite",
    "multi_sum_sq",
    "_multi_lamb_update",
    "_multi_mp_lamb_update",
    "_multi_adamw_update",
    "_multi_mp_adamw_update",
    "_cvimdecode",
    "_cvimresize",
    "_cvcopyMakeBorder",
}


def main(path):
    """Compose everything and keep the texts."""
    Pack = load_pack()
    samples, pack = Pack.load(path), Pack()
    for name, symbol in symbol_cases.cases(mx):
        pack.entries.append({"case": name, "json": symbol.tojson()})
    for e in samples.entries:
        if e["skip"] or e["op"] in BROKEN:
            continue
        for n in [len(e["inputs"])] if e["op"] in UNNAMED else {len(e["inputs"]), 0}:
            inputs = [mx.sym.Variable(f"in{i}") for i in range(n)]
            try:
                text = _symbol_creator(
                    operator(e["op"]), inputs, {}, list(e["params"]), list(e["params"].values()), "node", False
                ).tojson()
            except (mx.MXNetError, KeyError) as error:
                if n:  # what it needs it says; ours may have a default there
                    print(f"{e['op']} {e['params']}: {error}".splitlines()[0])
                continue  # not all operators make up variables
            pack.entries.append({"op": e["op"], "params": e["params"], "inputs": n, "json": text})
    OUT.parent.mkdir(exist_ok=True)
    pack.save(str(OUT))
    print(f"{OUT.name}: {len(pack.entries)} graphs, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
