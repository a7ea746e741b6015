"""Write what MXNet 1.9.1 makes of the cases of ``cases.py``.

Run in MXNet's own environment: ``python tests/rnn/make_golden.py``.
"""

import pathlib
import sys
import warnings

import cases
import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))

from make_golden import load_pack  # noqa: E402


def main():
    """Run all cases."""
    warnings.simplefilter("ignore")
    Pack = load_pack()
    pack = Pack()
    for name in cases.cells(mx):
        for way in cases.WAYS:
            _, symbol, _ = cases.graph(mx, name, way)
            numbers = cases.run(mx, name, way)
            pack.entries.append(
                {
                    "cell": name,
                    "way": way,
                    "json": symbol.tojson(),
                    "arrays": {k: pack.add(v) for k, v in numbers.items()},
                }
            )
        pack.entries.append({"weights": name, "arrays": {k: pack.add(v) for k, v in cases.weights(mx, name).items()}})
    for name in cases.ITERATORS:
        facts, arrays = cases.batches(mx, name)
        pack.entries.append({"iterator": name, "facts": facts, "arrays": [pack.add(a) for a in arrays]})
    for name in cases.CODINGS:
        pack.entries.append({"coding": name, "found": cases.coded(mx, name)})
    out = HERE / "golden" / "rnn.npz"
    pack.save(str(out))
    print(f"{out.name}: {len(pack.entries)} entries, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
