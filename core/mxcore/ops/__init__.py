"""The stock operators: a default plugin, through the same hooks as everybody's.

One module per subject; each declares operators and nothing else. To find one, search its name between quotes.
"""

from __future__ import annotations

from importlib import import_module

from mxcore import builtin, context, philox  # noqa: F401  what they declare is needed with any operator
from mxcore._core import dispatch  # noqa: F401  before `transfer`, which needs it and which it needs
from mxcore._core.hookspecs import hookimpl
from mxcore.families import declarations

from . import dtypes, infix  # noqa: F401  names of dtypes; Python's operators, which gradient rules compute with

API_VERSION = 1

#: The modules that declare operators.
MODULES = (
    "arithmetic",
    "unary",
    "reduce",
    "shape",
    "create",
    "indexing",
    "select",
    "gather",
    "ordering",
    "layout",
    "slicing",
    "repeating",
    "sequence",
    "matrix",
    "linalg",
    "triangles",
    "decompose",
    "storage",
    "stored",
    "patches",
    "facts",
    "amp",
    "dense",
    "conv",
    "pooling",
    "batch_norm",
    "norm",
    "activation",
    "output",
    "rnn",
    "upsample",
    "ctc",
    "spatial",
    "deform",
    "roi",
    "correlation",
    "resize",
    "v1",
    "attention",
    "estimators",
    "fourier",
    "processes",
    "image",
    "decode",
    "backward_names",
    "random",
    "random_pdf",
    "optimizer",
    "optimizer_multi",
    "custom",
    "control",
)


@hookimpl
def mxcore_ops():
    declarations(builtin, samples="mxcore.ops.samples.builtin:SAMPLES")
    found = [
        op
        for m in MODULES
        for op in declarations(import_module(f"mxcore.ops.{m}"), samples=f"mxcore.ops.samples.{m}:SAMPLES")
    ]
    return list(dict.fromkeys(found))
