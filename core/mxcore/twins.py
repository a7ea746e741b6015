"""Operators that mean what others mean under another name, as ``_npi_exp`` means ``exp``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from ._core.op import Op

__all__ = ["twin"]

#: Rules that are attached to an operator after its declaration.
_RULES = """
shape_rule dtype_rule storage_rule sparse_body cost_rule backward_rule replay_rule higher_rule loss_rule gives
states_rule input_attrs
""".split()


def _always(p: Any, *specs: Any) -> bool:
    return True


def twin(name: str, of: Op, *, when: Callable[..., bool] = _always, aliases: Iterable[str] = (), **changes: Any) -> Op:
    """Declare an operator that shares body, rules, facets and kernels with another one.

    What differs is told: an option of :func:`mxcore.plugin.op` or a facet by its name, a rule by attaching it to the
    result, as to any operator. Inputs may have other names: what is shared speaks of them by those.

    Parameters
    ----------
    name : str
    of : Op
        The operator that it means.
    when : callable, optional
        ``(p, *specs of the inputs) -> bool``: whether kernels of the other one compute it; always unless told.
    aliases : iterable of str
        Further names.
    **changes
        Options and facets, in the place of those of the other one.

    Examples
    --------
    >>> from mxcore.plugin import find_op
    >>> from mxcore.twins import twin
    >>> op = twin("my_tanh", find_op("tanh"), doc="The hyperbolic tangent.")
    >>> op.input_names, op.grad_rule is find_op("tanh").grad_rule
    (('data',), True)
    """
    declared = {
        k: v for k, v in of.declared.items() if k not in ("self", "name", "facets", "aliases", "samples", "role")
    }
    names = dict(zip(of.input_names, changes.get("inputs", "").split()))
    told = {k: _renamed(v, names) if k in ("alias", "expr") else v for k, v in of.declared["facets"].items()}
    declared["alias"] = _renamed(declared["alias"], names)
    options = {**declared, **told, "aliases": aliases, "doc": _renamed(of.doc, names), "twin_of": (of, when), **changes}
    options["grad"] = _with_arguments(changes.get("grad", of.grad_rule), names)
    made = Op(name, options.pop("body"), **options)
    for rule in _RULES:
        setattr(made, rule, getattr(of, rule))
    return made


def _renamed(text: Any, names: dict[str, str]) -> Any:
    """A text, or a function that gives one, with other names of inputs."""
    if not names or text is None:
        return text
    if callable(text):
        return lambda p: _renamed(text(p), names)
    return re.sub(r"[A-Za-z_]\w*", lambda m: names.get(m.group(), m.group()), text)


def _with_arguments(rule: Any, names: dict[str, str]) -> Any:
    """A gradient rule whose arguments have the names of inputs."""
    if not names or not isinstance(rule, FunctionType):
        return rule
    both = {**names, **{f"like_{old}": f"like_{new}" for old, new in names.items()}}
    code = rule.__code__
    # An argument that an inner function reads is among both.
    local, shared = (tuple(both.get(v, v) for v in names) for names in (code.co_varnames, code.co_cellvars))
    code = code.replace(co_varnames=local, co_cellvars=shared)
    return FunctionType(code, rule.__globals__, rule.__name__, rule.__defaults__, rule.__closure__)
