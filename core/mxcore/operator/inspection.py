"""Which operators there are, and what they take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core.params import REQUIRED, Param
from .._core.tables import ops
from ..parameters import Rest

__all__ = ["OperatorArguments", "get_all_registered_operators", "get_operator_arguments"]


class OperatorArguments(NamedTuple):
    """What `get_operator_arguments` tells: how many arguments there are, their names and types."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Names of all operators, those of plugins included."""
    return ops.names()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """What an operator takes: its inputs, then its parameters.

    Parameters
    ----------
    op_name : str

    Returns
    -------
    OperatorArguments
        Types are words such as ``'NDArray-or-Symbol'``, ``'int, required'``, ``"{'relu', 'tanh'}, required"``.

    Raises
    ------
    MXNetError
        (also KeyError) if there is no such operator.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.operator.get_operator_arguments``; numbers of every width are ``int`` and
    ``float`` here.

    Examples
    --------
    >>> import mxcore as mx
    >>> found = mx.operator.get_operator_arguments("Activation")
    >>> found.names, found.types[0]
    (['data', 'act_type'], 'NDArray-or-Symbol')
    """
    op = ops.get(op_name)
    inputs = list(op.input_names)
    types = ["NDArray-or-Symbol" + ("[]" if op.variadic else "")] * len(inputs)
    specs = {n: s for n, s in op.parser.specs.items() if not isinstance(s, Rest)}
    types += [_type(spec) for spec in specs.values()]
    return OperatorArguments(len(types), inputs + list(specs), types)


#: Kind of parameter -> MXNet's word for it, and for one that may be None.
_WORDS = {
    "int": "int",
    "float": "float",
    "bool": "boolean",
    "str": "string",
    "shape": "Shape(tuple)",
    "floats": "tuple of <float>",
    "graph": "Symbol",
}


def _type(spec: Param) -> str:
    """A parameter in MXNet's words."""
    choices = getattr(spec, "choices", None)
    if choices is not None:
        listed = ", ".join([*(["None"] if spec.optional else []), *map(repr, sorted(choices))])
        return f"{{{listed}}}, required" if spec.required else f"{{{listed}}},optional, default={str(spec.default)!r}"
    word = _WORDS.get(spec.kind, spec.kind)
    if spec.optional:
        word = ("Shape" if spec.kind == "shape" else word) + " or None"
    return f"{word}, required" if spec.default is REQUIRED else f"{word}, optional, default={_default(spec)}"


def _default(spec: Param) -> Any:
    value = spec.default
    if value is None:
        return repr("None") if spec.kind in ("int", "dtype") else None
    if spec.kind in ("shape", "floats"):
        return "[" + ",".join(f"{v:.9g}" for v in value) + "]"
    if spec.kind == "bool":
        return int(value)
    return f"{np.float32(value):.9g}" if spec.kind == "float" else repr(spec.format(value))
