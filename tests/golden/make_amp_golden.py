"""Write how MXNet 1.9.1 converts the graphs of ``amp_cases.py`` to mixed precision, and its lists of operators.

They go to ``data/scripts/amp.npz``. ``tools/make_golden.py`` runs it in MXNet's own environment, as::

    python tests/golden/make_amp_golden.py
"""

import json
import pathlib

import amp_cases
import mxnet as mx
from make_golden import load_pack
from mxnet.contrib import amp

OUT = pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "amp.npz"


def main():
    """Convert everything and keep the texts; None where MXNet fails."""
    pack = load_pack()()
    for name, convert in amp_cases.cases(mx, amp.convert_symbol):
        try:
            text = convert()
        except mx.MXNetError:
            text = None
        pack.entries.append({"case": name, "json": text})
    for module in (amp.lists.symbol_fp16, amp.lists.symbol_bf16):
        found = {k: v for k, v in vars(module).items() if k.isupper()}
        pack.entries.append({"lists": module.__name__.rpartition(".")[2], "json": json.dumps(found)})
    pack.save(str(OUT))
    print(f"{OUT.name}: {len(pack.entries)} entries, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
