"""Write what MXNet 1.9.1's ``mx.image`` makes of the cases of `image_cases.py`.

Run in MXNet's own environment: ``python tests/golden/make_image_golden.py``. Arrays of more than 700 numbers are kept
as shape, dtype, sum, and every 31st number.
"""

import importlib.util
import pathlib

import mxnet as mx
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def load(name):
    """A module beside this one."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    cases, found = load("image_cases"), {}
    for name in cases.CASES:
        for i, value in enumerate(cases.run(mx, name)):
            found[f"{name}.{i}"] = value.ravel()[::31] if value.size > 700 else value.ravel()
            found[f"{name}.{i}.shape"] = np.array(value.shape)
            found[f"{name}.{i}.dtype"] = np.array(value.dtype.str)
    np.savez_compressed(HERE / "data" / "images.npz", **found)
