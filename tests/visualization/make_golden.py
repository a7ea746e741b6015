"""Write what MXNet 1.9.1 says of the graphs of ``cases.py``.

Run in MXNet's own environment, with the package graphviz: ``python tests/visualization/make_golden.py``.
"""

import json
import pathlib

import cases
import mxnet as mx

OUT = pathlib.Path(__file__).resolve().parent / "golden.json"


def main():
    """Make all texts."""
    found = {
        "tables": {n: cases.table(mx, n) for n in cases.TABLES},
        "plots": {n: cases.plot(mx, n) for n in cases.PLOTS},
    }
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{OUT.name}: {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
