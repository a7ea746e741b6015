"""The stock operators: a default plugin, through the same hooks as everybody's.

A folder holds a family: `operators` (or several modules, one a subject), `gradients` (backward operators, and rules
that take more than a line) and `samples`, a table that is imported when somebody asks for samples. What several
families share is in `common`. To find an operator, search its name between quotes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mxcore import builtin, context, philox  # noqa: F401  what they declare is needed with any operator
from mxcore._core import dispatch  # noqa: F401  it makes operators callable
from mxcore._core.graph import Graph, GraphPass
from mxcore._core.hookspecs import hookimpl
from mxcore._core.op import Op
from mxcore.declarations import declarations

from .common import dtypes, python_operators  # noqa: F401  names of dtypes; what gradient rules compute with

API_VERSION = 1

#: Family -> its modules that declare operators, or attach something to those of families above.
FAMILIES = {
    "elementwise": "arithmetic functions casts estimators numpy_operators numpy_arithmetic gradients",
    "activation": "operators softmax numpy_operators gradients",
    "reduction": "operators statistics numpy_operators numpy_statistics differences gradients",
    "creation": "operators numpy_operators",
    "shape": "reshape rearrange join repeat numpy_operators numpy_diagonals numpy_joins numpy_edits gradients",
    "slicing": "operators gradients",
    "indexing": "subscripts take gather numpy_operators gradients",
    "ordering": "operators numpy_operators gradients",
    "sequence": "operators gradients",
    "linalg": "dot products triangles factorizations contractions norms numpy_operators gradients",
    "fourier": "operators numpy_windows gradients",
    "fully_connected": "operators gradients",
    "convolution": "operators deformable patches gradients",
    "pooling": "operators gradients",
    "normalization": "batch_norm sync_batch_norm layer_norm local_response gradients",
    "loss": "operators ctc picked gradients",
    "recurrent": "operators gradients",
    "attention": "operators gradients",
    "vision": "spatial roi correlation resize upsampling gradients",
    "detection": "boxes suppression multibox proposals regions gradients",
    "image": "operators augmentation decoding gradients",
    "random": "operators densities hawkes numpy_operators gradients",
    "optimizer": "single layerwise many",
    "sparse": "operators stored_values rows graphs",
    "quantization": "conversions layers elementwise calibration quantizable",
    "control": "operators",
    "custom": "operators",
    "legacy": "operators gradients",
}


def declared(family: str) -> list[Op]:
    """The operators that the modules of a family declare or use by name."""
    modules = [import_module(f"mxcore.ops.{family}.{m}") for m in FAMILIES[family].split()]
    return declarations(*modules, samples=f"mxcore.ops.{family}.samples:SAMPLES")


@hookimpl
def mxcore_ops() -> Any:
    declarations(builtin, samples="mxcore.ops.common.samples:SAMPLES")  # they are there already
    return list(dict.fromkeys(op for family in FAMILIES for op in declared(family)))


@hookimpl
def mxcore_graph_passes() -> list[GraphPass]:
    def picked_softmax(graph: Graph) -> Graph:
        from .loss.picked_softmax import picked_softmax

        return picked_softmax(graph)

    return [GraphPass("picked_softmax", -1, picked_softmax, late=True, operators=["pick"])]
