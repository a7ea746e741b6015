"""Composition: operators over symbols become nodes, and free variables of graphs are replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import attribute
from .. import name as naming
from .._core import binding, tables
from .._core.errors import error, suggest
from .._core.graph import Node, topo, variable
from .._core.op import Op
from .._op_functions import LAST_OF_SYMBOLS, take_last
from ..parameters import strings
from .attrs import HIDDEN, is_wrapped, kept_by_op
from .base import Entry, SymbolBase

__all__ = ["auto_variable", "copied", "entries", "hint", "replacements"]


#: Operators of ``mx.np`` lend nodes their names without this, as in MXNet.
_FACE = re.compile("^_np[ix]?_")


def hint(op: str) -> str:
    """What a node that runs an operator is called, before its number."""
    return _FACE.sub("", op.lower())


def auto_variable(name: str, op: Op, label: str, attrs: Mapping[str, str]) -> Node:
    """The variable for an input that was left out: like MXNet's it inherits the attributes of its node."""
    return variable(name, **{**attrs, **op.input_attrs.get(label, {})})


def _is_symbol(x: Any) -> bool:
    return isinstance(x, SymbolBase)


def entries(op_name: str, args: Sequence[Any], kwargs: dict[str, Any], op: Op | None = None) -> list[Entry]:
    """The outputs of a new node that runs an operator.

    Inputs that are missing become variables ``<name>_<input>``. Beside inputs and parameters `kwargs` may hold
    ``name``, ``attr`` and attributes, ``lr_mult`` or ``__like_this__``.
    """
    op = op or tables.ops.get(op_name)
    args = take_last(op, args, kwargs, LAST_OF_SYMBOLS)
    name, attr = kwargs.pop("name", None), kwargs.pop("attr", None)
    if not isinstance(name, str | None):
        raise error(TypeError, f"operator {op.name}: name must be a str, got {name!r}")
    kwargs.pop("out", None)
    attrs = attribute.current().get(attr)
    for k in [k for k in attrs if k in op.params]:
        kwargs[k] = attrs.pop(k)
    attrs = {k: str(v) for k, v in attrs.items()}  # as MXNet does for operators, though not for variables
    named = {k: str(kwargs.pop(k)) for k in list(kwargs) if is_wrapped(k) or k in HIDDEN and k not in op.params}
    attrs = {**kept_by_op(op, attrs), **kept_by_op(op, {k: v for k, v in named.items() if k not in (attr or ())})}
    if op.variadic and len(args) == 1 and isinstance(args[0], (list, tuple)):
        args = args[0]
    if op.variadic and args and all(isinstance(a, SymbolBase) for a in args):
        args = [type(a)([e]) for a in args for e in a._heads]
    attrs.update({k: str(v) for k, v in binding.ignored(op, kwargs, _is_symbol).items()})
    inputs, p = binding.bind(op, args, kwargs, _is_symbol, need_all=False)
    name = naming.current().get(name, hint(op_name))
    found: list[Entry] = []
    for i, (label, x) in enumerate(zip(p._sig.inputs, inputs)):
        if x is None:
            found.append((auto_variable(f"{name}_{label}", op, label, {**attrs, **strings(op, p)}), 0))
            continue
        if len(x._heads) != 1:
            raise error(
                ValueError,
                f"operator {op.name}: input '{label}' must have one output, it has {len(x._heads)}: "
                f"{x.list_outputs()}; choose one",
            )
        found.append(x._heads[0])
        n = found[-1][0]
        if n.op is None:
            for key, value in op.input_attrs.get(label, {}).items():
                n.attrs.setdefault(key, value)
        elif i in p._sig.aux or i in p._sig.mutates:
            raise error(
                ValueError,
                f"operator {op.name} writes its input '{label}', which must be a Variable; "
                f"it is the output '{x.list_outputs()[0]}'",
            )
    if SymbolBase.before is not None:
        found = SymbolBase.before(op, p, found)
    node = Node(op, p, found, name, attrs)
    return [(node, i) for i in range(p._sig.visible)]


def replacements(
    args: Sequence[Any], kwargs: Mapping[str, Any], arguments: Sequence[str], inputs: Sequence[str]
) -> dict[str, Entry]:
    """Name of a free variable -> what replaces it, from the arguments of a call; errors list the free variables."""
    if args and kwargs:
        raise error(TypeError, "compose takes replacements by position or by name, not both")
    if len(args) > len(arguments):
        raise error(
            TypeError, f"compose got {len(args)} symbols, there are {len(arguments)} arguments: {list(arguments)}"
        )
    swap = {}
    for k, v in {**dict(zip(arguments, args)), **kwargs}.items():
        if not isinstance(v, SymbolBase):
            raise error(TypeError, f"compose: {k} must be a Symbol, got {type(v).__name__}")
        if len(v._heads) != 1:
            raise error(ValueError, f"compose: {k} has {len(v._heads)} outputs {v.list_outputs()}; choose one")
        if k not in inputs:
            raise error(
                ValueError, f"compose: no argument is named {k!r}{suggest(k, inputs)}; there are: {', '.join(inputs)}"
            )
        swap[k] = v._heads[0]
    return swap


def copied(
    heads: Sequence[Entry], swap: Mapping[str, Entry], name: str | None = None, variables: bool = False
) -> list[Entry]:
    """The heads of a copy of a graph in which free variables are replaced.

    Variables that stay are shared with the original unless `variables` says otherwise: so several copies have their
    weights in common. The node of the first head gets `name`.
    """
    done: dict[int, Node] = {}

    def entry(e: Entry) -> Entry:
        n, i = e
        return swap[n.name] if n.op is None and n.name in swap else (done[id(n)], i)

    for n in topo(heads):
        if n.op is None:
            done[id(n)] = Node(None, None, (), n.name, dict(n.attrs)) if variables else n
            continue
        inputs = [entry(e) for e in n.inputs]
        for i in (*n.params._sig.aux, *n.params._sig.mutates):
            if n.inputs[i][0].op is None and inputs[i][0].op is not None:
                raise error(
                    ValueError,
                    f"compose: '{n.inputs[i][0].name}' is written by operator {n.op.name} '{n.name}'; only a Variable "
                    f"can replace it, not the output of '{inputs[i][0].name}'",
                )
        first = bool(name) and n is heads[0][0]
        done[id(n)] = Node(
            n.op,
            n.params,
            inputs,
            str(name) if first else n.name,
            dict(n.attrs),
            None if n.forward is None else done[id(n.forward)],
        )
    return [entry(e) for e in heads]
