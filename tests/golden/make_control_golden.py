"""Write what operators in Python and loops give in MXNet 1.9.1: numbers, and the symbols as text.

Run in MXNet's own environment: ``python tests/golden/make_control_golden.py``. The file ``data/scripts/control.npz``
holds, for each case of ``control_cases.py``, its arrays by name and the text of its symbol.
"""

import pathlib

import control_cases
import mxnet as mx
from make_golden import load_pack

OUT = pathlib.Path(__file__).resolve().parent / "data" / "scripts" / "control.npz"


def main():
    """Run all cases."""
    control_cases.register(mx)
    pack = load_pack()()
    for name in control_cases.CASES:
        arrays, text = control_cases.run(mx, name)
        kept = {k: [pack.add(v), str(v.dtype)] for k, v in arrays.items()}
        pack.entries.append({"case": name, "json": text, "arrays": kept})
        print(f"{name}: {len(arrays)} arrays")
    OUT.parent.mkdir(exist_ok=True)
    pack.save(str(OUT))
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
