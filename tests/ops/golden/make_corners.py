"""Make ``corners.npz`` with the real MXNet 1.9.1: ``python tests/ops/golden/make_corners.py`` in its environment."""

import importlib.util
import pathlib

import mxnet as mx
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("corners", HERE / "corners.py")
corners = importlib.util.module_from_spec(spec)
spec.loader.exec_module(corners)

arrays = {
    f"{i}.{j}": np.asarray(a, np.float32)
    for i, case in enumerate(corners.CASES)
    for j, a in enumerate(corners.run(mx, case))
}
np.savez_compressed(HERE / "corners.npz", names=np.array([repr(c) for c in corners.CASES]), **arrays)
print(f"{len(corners.CASES)} cases of MXNet {mx.__version__}")
