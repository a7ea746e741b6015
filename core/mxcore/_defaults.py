"""The plugin ``stock``: the library's optimizers, metrics, initializers, schedulers, iterators and commands.

They come through the same hooks as everybody's. The tables hold names of classes, not classes: looking one up
imports its package, listing the names imports nothing.
"""

from __future__ import annotations

from ._commands import COMMANDS
from ._core.hookspecs import hookimpl

API_VERSION = 1

#: Classes of MXNet, each under its own name in lower case, and further names of some.
OPTIMIZERS = (
    "AdaDelta AdaGrad Adam Adamax DCASGD FTML Ftrl LAMB LARS LBSGD NAG Nadam RMSProp SGD SGLD Signum Test ccSGD"
)
METRICS = """
    Accuracy=acc Caffe CompositeEvalMetric=composite CrossEntropy=ce CustomMetric F1 Loss MAE MCC MSE
    NegativeLogLikelihood=nll_loss PCC PearsonCorrelation=pearsonr Perplexity RMSE TopKAccuracy=top_k_accuracy,top_k_acc
    Torch
"""
INITIALIZERS = "Bilinear Constant FusedRNN LSTMBias MSRAPrelu Normal One=ones Orthogonal Uniform Xavier Zero=zeros"
LR_SCHEDULERS = """
    CosineScheduler=cosine FactorScheduler=factor MultiFactorScheduler=multifactor PolyScheduler=poly
"""
#: Iterators go by the name that they have in ``mx.io``.
ITERATORS = ("CSVIter", "MNISTIter", "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter")


def _named(module: str, classes: str) -> dict[str, str]:
    """Name -> ``"module:class"`` for the words of a table above."""
    table = {}
    for entry in classes.split():
        name, _, further = entry.partition("=")
        for key in (name.lower(), *filter(None, further.split(","))):
            table[key] = f"{module}:{name}"
    return table


@hookimpl
def mxcore_optimizers() -> dict[str, str]:
    return _named("mxcore.optimizer", OPTIMIZERS) | {"groupadagrad": "mxcore.optimizer.contrib:GroupAdaGrad"}


@hookimpl
def mxcore_metrics() -> dict[str, str]:
    return _named("mxcore.metric", METRICS)


@hookimpl
def mxcore_initializers() -> dict[str, str]:
    return _named("mxcore.initializer", INITIALIZERS)


@hookimpl
def mxcore_lr_schedulers() -> dict[str, str]:
    return _named("mxcore.lr_scheduler", LR_SCHEDULERS)


@hookimpl
def mxcore_iterators() -> dict[str, str]:
    return {name: f"mxcore.io:{name}" for name in ITERATORS}


@hookimpl
def mxcore_cli() -> dict[str, str]:
    return {name: module for name, (_, module) in COMMANDS.items()}
