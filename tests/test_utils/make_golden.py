"""Write what MXNet 1.9.1's test_utils answers to ``cases.py``: run it in MXNet's environment.

With SciPy in it, since the chi-square test of MXNet needs that (and as many samples as the buckets divide).
"""

import json
import pathlib

import cases
import mxnet as mx

if __name__ == "__main__":
    out = pathlib.Path(__file__).resolve().parent / "golden.json"
    facts = {name: f(mx) for name, f in cases.FACTS.items()}
    facts["chi_squares"] = cases.chi_squares(mx)
    facts["comparisons"] = {name: cases.comparison(mx, name) for name in cases.COMPARED}
    out.write_text(json.dumps(facts) + "\n")
    print(f"{out.name}: {out.stat().st_size} bytes")
