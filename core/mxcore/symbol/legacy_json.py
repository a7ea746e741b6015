"""What graphs in files of older versions of MXNet mean.

========== =========================================================================================================
until      what was different
========== =========================================================================================================
0.8        no version; parameters under ``param`` and attributes under ``attr``; auxiliary states, and any input that
the
           user left out, are not among the nodes; ``backward_source_id``; inputs are pairs
0.9.3      the variable of an auxiliary state does not say how it is initialised
0.9.4      ``argmax`` and ``argmin`` write ``axis=-1`` for "over everything"
0.12       parameters and attributes together under ``attr``
1.8        an operator may hold ``weight_lr_mult`` and the like for its inputs, and attributes without underscores
========== =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.op import Op
from .attrs import HIDDEN
from .base import Entry

__all__ = ["give_to_inputs", "texts_of", "version_of"]


def version_of(data: Mapping[str, Any]) -> int:
    """MXNet's number of the version that wrote a graph: 10901 for 1.9.1; 800 where the file does not say."""
    attrs = data.get("attrs")
    found = attrs.get("mxnet_version") if isinstance(attrs, dict) else None
    if isinstance(found, list) and len(found) == 2 and isinstance(found[1], int):
        return found[1]
    return 800


def texts_of(item: Mapping[str, Any], version: int) -> dict[str, str]:
    """Parameters and attributes of a node together, those that mean something else today corrected."""
    found: dict[str, str] = {}
    for key in ("param", "attr", "attrs"):
        part = item.get(key) or {}
        if not isinstance(part, dict):
            raise ValueError(f"'{key}' must be an object of strings, got {part!r}")
        for k, v in part.items():
            if isinstance(v, (dict, list)):
                raise ValueError(f"'{key}': '{k}' must be a string, got {v!r}")
            found[k] = v if isinstance(v, str) else str(v)
    if version < 905 and item.get("op") in ("argmax", "argmin") and found.get("axis") == "-1":
        del found["axis"]
    return found


def give_to_inputs(op: Op, labels: Sequence[str], inputs: Sequence[Entry], attrs: dict[str, str], version: int) -> None:
    """Move attributes for inputs (``weight_lr_mult``) from an operator to its variables, and add what these lack."""
    for label, (n, _) in zip(labels, inputs):
        for hidden in HIDDEN:
            value = attrs.pop(f"{label}_{hidden}", None)
            if value is not None and n.op is None:
                n.attrs[f"__{hidden}__"] = value
        if n.op is None and version < 904:
            for key, value in op.input_attrs.get(label, {}).items():
                n.attrs.setdefault(key, value)
