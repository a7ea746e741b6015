"""Write the steps of every optimizer of MXNet 1.9.1, and its pickles of states.

Run in MXNet's own environment: ``python tests/golden/make_optimizer_golden.py``. The file
``data/optimizers.npz`` holds the weights and gradients that all cases start from, the cases as JSON, and
for each case the weights after each step.
"""

import json
import logging
import pathlib
import warnings

import mxnet as mx
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent / "data" / "optimizers.npz"
SHAPES = {"fc_weight": (3, 4), "fc_bias": (5, 1), "bn_gamma": (2, 3)}
STEPS = 10
ALL = {"wd": 0.1, "clip_gradient": 0.5, "rescale_grad": 0.5}
SCHEDULED = {"lr_scheduler": ["FactorScheduler", {"step": 3, "factor": 0.5, "base_lr": 0.2}]}
SHORT_WARMUP = {"warmup_epochs": 2, "updates_per_epoch": 4}

DENSE = {
    "sgd": [{}, {"momentum": 0.9}, {"momentum": 0.9, **ALL}, {"wd": 0.3}, SCHEDULED],
    "ccsgd": [{"momentum": 0.9}],
    "nag": [{}, {"momentum": 0.9}, {"momentum": 0.9, **ALL}],
    "signum": [{}, {"momentum": 0.0}, {"momentum": 0.8, "wd_lh": 0.2, **ALL}, {"momentum": 0.0, **ALL}],
    "lbsgd": [
        {},
        {"momentum": 0.9, "batch_scale": 3, **SHORT_WARMUP},
        {"batch_scale": 2, "warmup_strategy": "power2", **SHORT_WARMUP, **ALL},
        {"batch_scale": 2, "warmup_strategy": "sqrt", **SHORT_WARMUP},
        {"batch_scale": 2, "warmup_strategy": "lars", "momentum": 0.5, "wd": 0.01},
        {"batch_scale": 2, "begin_epoch": 1, "warmup_epochs": 3, "updates_per_epoch": 3},
    ],
    "lars": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "eta": 0.1, "eps": 1e-3, **ALL},
        {"eta": 0.5, "wd": 0.1},
        {"momentum": 0.9, "eta": 0.2, **SCHEDULED},
        {"momentum": 0.9, "eta": 0.2, "momentum_correction": False, **SCHEDULED},
    ],
    "lamb": [
        {},
        {"learning_rate": 0.1, **ALL},
        {"learning_rate": 0.1, "lower_bound": 2.0, "upper_bound": 3.0},
        {"learning_rate": 0.05, "bias_correction": False, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3},
    ],
    "dcasgd": [{}, {"lamda": 0.3, **ALL}],
    "adam": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, **ALL}, SCHEDULED],
    "adagrad": [{}, {"eps": 0.1, "learning_rate": 0.3, **ALL}],
    "rmsprop": [
        {},
        {"centered": True},
        {"gamma1": 0.8, "clip_weights": 0.7, "epsilon": 0.01, **ALL},
        {"centered": True, "learning_rate": 0.05, "gamma1": 0.8, "gamma2": 0.5, "clip_weights": 0.7, **ALL},
    ],
    "adadelta": [{}, {"rho": 0.5, "epsilon": 0.01, **ALL}],
    "ftrl": [{}, {"lamda1": 0.3, "beta": 0.5, "learning_rate": 0.4, **ALL}, SCHEDULED],
    "ftml": [{}, {"beta1": 0.5, "beta2": 0.9, "learning_rate": 0.1, **ALL}],
    "adamax": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, **ALL}],
    "nadam": [{}, {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "schedule_decay": 0.1, **ALL}],
    "groupadagrad": [{}, {"eps": 0.1, "learning_rate": 0.3, "clip_gradient": 0.5, "rescale_grad": 0.5}],
    "test": [{}, {"rescale_grad": 0.5}],
}
HALF = {
    "sgd": [{}, {"momentum": 0.9, **ALL}],
    "nag": [{}, {"momentum": 0.9}],
    "lars": [{"eta": 0.5}, {"momentum": 0.9, "eta": 0.5}],
    "lamb": [{"learning_rate": 0.1}],
    "adam": [{"learning_rate": 0.1}],
    "lbsgd": [{"momentum": 0.9, "batch_scale": 2}],
}
SPARSE = {
    "sgd": [
        {},
        {"momentum": 0.9, "wd": 0.1},
        {"momentum": 0.9, "lazy_update": False},
        {"lazy_update": False, **ALL},
        {"momentum": 0.9, "lazy_update": True, **ALL},
    ],
    "adam": [
        {"learning_rate": 0.1},
        {"learning_rate": 0.1, "lazy_update": False},
        {"learning_rate": 0.1, "lazy_update": True, **ALL},
        {"learning_rate": 0.1, "lazy_update": False, **ALL},
    ],
    "adagrad": [{"learning_rate": 0.1}, {"learning_rate": 0.1, "clip_gradient": 0.5, "rescale_grad": 0.5}],
    "ftrl": [{}, {"lamda1": 0.3, "beta": 0.5, "learning_rate": 0.4, **ALL}],
    "groupadagrad": [{"learning_rate": 0.1, "clip_gradient": 0.4}],
    **{
        name: [{"learning_rate": 0.1, "wd": 0.1}]
        for name in (
            *("ccsgd", "nag", "signum", "lbsgd", "lars", "lamb", "dcasgd", "rmsprop", "adadelta"),
            *("ftml", "adamax", "nadam", "test"),
        )
    },
}


def optimizer(name, config, half):
    config = dict(config)
    if "lr_scheduler" in config:
        kind, arguments = config["lr_scheduler"]
        config["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(**arguments)
    return mx.optimizer.create(name, param_idx2name=dict(enumerate(SHAPES)), multi_precision=half, **config)


def split(flat):
    """One vector as the three arrays."""
    sizes = np.cumsum([np.prod(s) for s in SHAPES.values()])[:-1]
    return [part.reshape(s) for part, s in zip(np.split(flat, sizes), SHAPES.values())]


def steps(rule, start, grads, half):
    dtype = "float16" if half else "float32"
    update = mx.optimizer.get_updater(rule)
    weights = [mx.nd.array(w, dtype=dtype) for w in split(start)]
    indices, out = list(range(len(weights))), []
    for grad in grads:
        update(indices, [mx.nd.array(g, dtype=dtype) for g in split(grad)], weights)
        out.append(np.concatenate([w.asnumpy().ravel() for w in weights]))
    return np.array(out)


def sparse_steps(rule, start, rows, values, stype="default"):
    """The weights, of a storage type, after each step along row_sparse gradients; None where MXNet refuses."""
    update, weight, out = mx.optimizer.get_updater(rule), mx.nd.array(start).tostype(stype), []
    try:
        for r, v in zip(rows, values):
            grad = mx.nd.sparse.row_sparse_array((v, r), shape=start.shape, dtype="float32")
            update(0, grad, weight)
            out.append(weight.asnumpy())
    except Exception as e:
        print(type(rule).__name__, stype, repr(e).split("\\n")[0][:150])
        return None
    return np.array(out)


def states(name, config, with_optimizer):
    update = mx.optimizer.get_updater(mx.optimizer.create(name, **config))
    half = config.get("multi_precision", False)
    weight = mx.nd.array([1, 2, 3], dtype="float16" if half else "float32")
    for _ in range(2):
        update(0, mx.nd.ones(3, dtype=weight.dtype), weight)
    return np.frombuffer(update.get_states(with_optimizer), np.uint8)


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    rng = np.random.default_rng(0)
    size = sum(int(np.prod(s)) for s in SHAPES.values())
    data = {
        "start": rng.normal(size=size).astype("float32"),
        "grads": rng.normal(size=(STEPS, size)).astype("float32"),
        "sparse_start": rng.normal(size=(6, 3)).astype("float32"),
        "sparse_rows": np.array([sorted(rng.choice(6, 3, replace=False)) for _ in range(STEPS)]),
        "sparse_grads": rng.normal(size=(STEPS, 3, 3)).astype("float32"),
    }
    cases = []
    for kind, table in (("dense", DENSE), ("half", HALF), ("sparse", SPARSE), ("rows", SPARSE)):
        for name, configs in table.items():
            for i, config in enumerate(configs):
                rule = optimizer(name, config, kind == "half")
                if kind in ("sparse", "rows"):
                    stype = "row_sparse" if kind == "rows" else "default"
                    found = sparse_steps(rule, *(data["sparse_" + n] for n in ("start", "rows", "grads")), stype)
                    if found is None:
                        continue
                else:
                    found = steps(rule, data["start"], data["grads"], kind == "half")
                key = f"{kind}_{name}_{i}"
                data[key] = found
                cases.append([key, name, config])
    data["cases"] = np.array(json.dumps(cases))
    data["shapes"] = np.array(json.dumps(SHAPES))
    data["states_sgd"] = states("sgd", {"momentum": 0.9}, False)
    data["states_half"] = states("sgd", {"momentum": 0.9, "multi_precision": True}, False)
    data["states_adam"] = states("adam", {"wd": 0.1}, True)
    OUT.parent.mkdir(exist_ok=True)
    np.savez_compressed(OUT, **data)


if __name__ == "__main__":
    main()
