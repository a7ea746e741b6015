"""Operators that mean what others mean under another name, as ``_npi_exp`` means ``exp``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ._core.op import Op

__all__ = ["twin"]

#: Rules that are attached to an operator after its declaration.
_RULES = """
shape_rule dtype_rule storage_rule sparse_body cost_rule backward_rule replay_rule higher_rule loss_rule grad_rule gives
input_attrs
""".split()


def _always(p: Any, *specs: Any) -> bool:
    return True


def twin(name: str, of: Op, *, when: Callable[..., bool] = _always, aliases: Iterable[str] = (), **changes: Any) -> Op:
    """Declare an operator that shares body, rules, facets and kernels with another one.

    What differs is told: an option of :func:`mxcore.plugin.op` or a facet by its name, a rule by attaching it to the
    result, as to any operator.

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
    options = {**declared, **of.declared["facets"], "aliases": aliases, "twin_of": (of, when), **changes}
    made = Op(name, options.pop("body"), **options)
    for rule in _RULES:
        if rule != "grad_rule" or "grad" not in changes:
            setattr(made, rule, getattr(of, rule))
    return made
