"""Write what MXNet 1.9.1 makes of the cases of `rnn_cases.py`.

Run in MXNet's own environment: ``python tests/golden/make_rnn_golden.py``.
"""

import importlib.util
import pathlib

import mxnet as mx
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("rnn_cases", HERE / "rnn_cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)

if __name__ == "__main__":
    found = {f"{name}.{i}": value for name in cases.CASES for i, value in enumerate(cases.run(mx, name))}
    np.savez_compressed(HERE / "data" / "rnn_gluon.npz", **found)
