"""Write training runs of MXNet 1.9.1's Module, ten steps with every optimizer.

Run in MXNet's own environment: ``python tests/golden/make_module_golden.py``. The file ``data/modules.npz`` holds data,
first parameters and, for each case of `module_cases.py`, the parameters after five and ten steps.
"""

import importlib.util
import pathlib
import warnings

import mxnet as mx
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("module_cases", HERE / "module_cases.py")
cases = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(cases)


def start():
    """Data and first parameters."""
    rs = np.random.RandomState(7)
    given = {
        "data": rs.randn(cases.STEPS, cases.BATCH, *cases.IMAGE),
        "label": rs.randint(0, cases.CLASSES, (cases.STEPS, cases.BATCH)),
    }
    net = cases.network(mx)
    args, _, auxs = net.infer_shape(data=(cases.BATCH, *cases.IMAGE))
    for name, shape in zip(net.list_arguments(), args):
        if name not in ("data", "softmax_label"):
            given["arg." + name] = rs.uniform(-0.5, 0.5, shape) + (name == "bn_gamma")
    for name, shape in zip(net.list_auxiliary_states(), auxs):
        given["aux." + name] = np.full(shape, float(name.endswith("var")))
    return {k: v.astype("float32") for k, v in given.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    first = start()
    runs = {"run." + key: np.array(cases.train(mx, first, case), "float32") for key, case in cases.CASES.items()}
    np.savez_compressed(HERE / "data" / "modules.npz", **first, **runs)
