"""Write what the metrics of MXNet 1.9.1 say about a few batches.

Run in MXNet's own environment: ``python tests/golden/make_metric_golden.py``. The file
``data/metrics.json`` holds the batches and, for each case, the local and global values after each batch;
`RESETS` says what is reset before a batch.
"""

import json
import math
import pathlib

import mxnet as mx
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent / "data" / "metrics.json"
RESETS = {2: "reset_local", 4: "reset"}
BATCHES = 6

#: (class, arguments, kind of batch)
CASES = [
    ["Accuracy", {}, "classes4"],
    ["Accuracy", {"axis": 1}, "planes"],
    ["Accuracy", {}, "votes"],
    ["TopKAccuracy", {"top_k": 2}, "classes4"],
    ["TopKAccuracy", {"top_k": 3}, "classes4"],
    ["F1", {}, "classes2"],
    ["F1", {"average": "micro"}, "classes2"],
    ["MCC", {}, "classes2"],
    ["MCC", {"average": "micro"}, "classes2"],
    ["PCC", {}, "classes2"],
    ["PCC", {}, "classes4"],
    ["Perplexity", {"ignore_label": None}, "classes4"],
    ["Perplexity", {"ignore_label": 1}, "classes4"],
    ["MAE", {}, "vectors"],
    ["MSE", {}, "vectors"],
    ["RMSE", {}, "matrices"],
    ["CrossEntropy", {}, "classes4"],
    ["CrossEntropy", {"eps": 0.1}, "classes4"],
    ["NegativeLogLikelihood", {}, "classes4"],
    ["PearsonCorrelation", {}, "vectors"],
    ["PearsonCorrelation", {"average": "micro"}, "vectors"],
    ["Loss", {}, "vectors"],
    ["Torch", {}, "matrices"],
    ["Caffe", {}, "vectors"],
]


def batch(rng, kind):
    """A (label, prediction) of the kind."""
    if kind.startswith("classes"):
        k = int(kind[-1])
        scores = rng.random((7, k)) + 0.05
        return rng.integers(0, k, 7), scores / scores.sum(axis=1, keepdims=True)
    if kind == "planes":
        return rng.integers(0, 3, (2, 5)), rng.random((2, 3, 5))
    if kind == "votes":
        return rng.integers(0, 3, 7), rng.integers(0, 3, 7)
    shape = (6,) if kind == "vectors" else (3, 2)
    return rng.normal(size=shape), rng.normal(size=shape)


def plain(value):
    return None if math.isnan(value) else float(value)


def main():
    rng = np.random.default_rng(0)
    batches = {
        kind: [[part.astype("float32").tolist() for part in batch(rng, kind)] for _ in range(BATCHES)]
        for kind in sorted({case[2] for case in CASES})
    }
    values = []
    for name, arguments, kind in CASES:
        metric, found = getattr(mx.metric, name)(**arguments), []
        for i, (label, pred) in enumerate(batches[kind]):
            if i in RESETS:
                getattr(metric, RESETS[i])()
            metric.update([mx.nd.array(label)], [mx.nd.array(pred)])
            found.append([plain(metric.get()[1]), plain(metric.get_global()[1])])
        values.append({"class": name, "arguments": arguments, "batches": kind, "values": found})
    resets = {str(i): how for i, how in RESETS.items()}
    OUT.write_text(json.dumps({"resets": resets, "batches": batches, "cases": values}) + "\n")


if __name__ == "__main__":
    main()
