"""Write the pickled states of every optimizer of MXNet 1.9.1, in the protocols of Python 2 and 3.

Run in MXNet's own environment: ``python tests/golden/make_states_golden.py``. The file ``data/states.npz`` holds, under
``<optimizer>/<protocol>/<with the optimizer>``, the bytes, and under ``<optimizer>/leaves`` the numbers of the states.
"""

import json
import logging
import pathlib
import pickle
import warnings

import mxnet as mx
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent / "data" / "states.npz"
#: Python 2 wrote protocol 0 and 2, MXNet 1.9.1 writes that of its Python.
PROTOCOLS = (0, 2, 4)
CONFIGS = {
    "groupadagrad": {"wd": 0},
    "sgd": {"momentum": 0.9, "multi_precision": True},
    "adam": {"lr_scheduler": ["FactorScheduler", {"step": 3, "factor": 0.5}], "clip_gradient": 0.5},
    "nag": {"momentum": 0.9, "lr_scheduler": ["MultiFactorScheduler", {"step": [1, 5]}]},
    "lars": {"momentum": 0.9, "lr_scheduler": ["PolyScheduler", {"max_update": 10, "warmup_steps": 2}]},
    "ftrl": {"lr_scheduler": ["CosineScheduler", {"max_update": 10}]},
    "lbsgd": {"momentum": 0.9},
    "rmsprop": {"centered": True},
    "signum": {"momentum": 0.9},
}


def optimizer(name):
    config = dict(CONFIGS.get(name, {}))
    if "lr_scheduler" in config:
        kind, arguments = config["lr_scheduler"]
        config["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(**arguments)
    config.setdefault("wd", 0.125)
    return mx.optimizer.create(name, param_idx2name={0: "fc_weight", 1: "fc_bias"}, **config)


def leaves(state):
    if isinstance(state, (list, tuple)):
        return [leaf for part in state for leaf in leaves(part)]
    return [state] if isinstance(state, mx.nd.NDArray) else []


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    found = {}
    for name in sorted(mx.optimizer.Optimizer.opt_registry):
        update = mx.optimizer.get_updater(optimizer(name))
        half = CONFIGS.get(name, {}).get("multi_precision", False)
        for i in range(2):
            weight = mx.nd.array([[1], [2], [3]], dtype="float16" if half else "float32")
            update(i, mx.nd.ones_like(weight), weight)
        for protocol in PROTOCOLS:
            for whole in (0, 1):
                data = pickle.dumps((update.states, update.optimizer) if whole else update.states, protocol)
                found[f"{name}/{protocol}/{whole}"] = np.frombuffer(data, np.uint8)
        arrays = [a.asnumpy().ravel().tolist() for i in range(2) for a in leaves(update.states[i])]
        found[f"{name}/leaves"] = np.array(json.dumps(arrays))
    sparse = mx.optimizer.get_updater(mx.optimizer.create("sgd", momentum=0.9))
    weight = mx.nd.ones((4, 2)).tostype("row_sparse")
    grad = mx.nd.sparse.row_sparse_array(([[1, 2]], [2]), shape=(4, 2))
    sparse(0, grad, weight)
    found["sparse/2/0"] = np.frombuffer(pickle.dumps(sparse.states, 2), np.uint8)
    found["sparse/leaves"] = np.array(json.dumps([sparse.states[0].asnumpy().ravel().tolist()]))
    np.savez_compressed(OUT, **found)


if __name__ == "__main__":
    main()
