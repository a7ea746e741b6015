"""Graphs over eight bits: which operators become quantised ones, and where values change between the two worlds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..._core import tables
from ..._core.graph import Node, topo
from ...composing import beside
from ...facets import Quantized
from ...symbol import Symbol, outputs
from ...symbol.base import output_name

__all__ = ["SUFFIXES", "Plan", "calibrated", "quantized"]

Entry = tuple[Node, int]
_PREFIX = "quantized_"
#: What a quantised parameter and the ends of its range are called after.
SUFFIXES = ("_quantize", "_quantize_min", "_quantize_max")


class Plan(NamedTuple):
    """A quantised graph, and what is to be known of it.

    Attributes
    ----------
    symbol : Symbol
    layers : list of str
        Values of the first graph whose ranges make it faster, by their names.
    left : dict of str to str
        Nodes that stay in float although their operators are quantised elsewhere -> why.
    """

    symbol: Symbol
    layers: list[str]
    left: dict[str, str]


def _chosen(nodes: Iterable[Node], excluded: Collection[str], operators: Collection[str], dtype: str) -> Any:
    """Node id -> how it is quantised, for all that can be; and why others cannot be."""
    found: dict[int, Quantized] = {}
    left: dict[str, str] = {}
    for n in nodes:
        told = None if n.op is None else n.op.facet("quantized", n.params)
        if told is None:
            continue
        if n.name in excluded or not {n.op.name, *n.op.aliases}.isdisjoint(operators):
            left[n.name] = "it is excluded"
        elif isinstance(told, str):
            left[n.name] = told
        elif dtype != "int8" and any(n.inputs[i][0].op is not None for i in told.int8 if i < len(n.inputs)):
            left[n.name] = f"{told.op} takes int8 only, and quantized_dtype is {dtype}"
        else:
            found[id(n)] = told
    return found, left


def _between(nodes: list[Node], found: Mapping[int, Quantized]) -> set[int]:
    """Nodes that are worth it by themselves, and those on ways from one to another with nothing else on them."""
    readers: dict[int, list[Node]] = {}
    for n in nodes:
        for m, _ in n.inputs:
            readers.setdefault(id(m), []).append(n)
    always = [n for n in nodes if id(n) in found and found[id(n)].always]

    def reached(step: Any) -> set[int]:
        seen: set[int] = set()
        left = [*always]
        while left:
            for m in step(left.pop()):
                if id(m) in found and not found[id(m)].always and id(m) not in seen:
                    seen.add(id(m))
                    left.append(m)
        return seen

    before, after = reached(lambda n: [m for m, _ in n.inputs]), reached(lambda n: readers.get(id(n), ()))
    return {id(n) for n in always} | before & after


class _Walk:
    """One walk over a graph: each value has a form in float and one in eight bits, made when somebody reads it."""

    def __init__(self, found: Mapping[int, Quantized], offline: Collection[str], dtype: str) -> None:
        self.found, self.offline, self.dtype = found, offline, dtype
        self.new: dict[int, Node] = {}
        self.layers: dict[int, str] = {}
        self._float: dict[Entry, Entry] = {}
        self._whole: dict[tuple[Entry, bool, bool], list[Entry]] = {}

    def make(self, name: str, label: str, inputs: list[Entry], n: Node, **params: Any) -> Node:
        op = tables.ops.get(name)
        return Node(op, op.parse(params), inputs, label, beside(n))

    def is_whole(self, e: Entry) -> bool:
        """Whether a value of the old graph comes out in eight bits."""
        return id(e[0]) in self.found and not self.found[id(e[0])].float_output

    def floats(self, e: Entry) -> Entry:
        """The value in float."""
        n, i = e
        if not self.is_whole(e):
            return self.new[id(n)], i
        if e not in self._float:
            self._float[e] = self.make("_contrib_dequantize", f"{n.name}_dequantize", self.wholes(e), n), 0
        return self._float[e]

    def wholes(self, e: Entry, shifted: bool = False, int8: bool = False) -> list[Entry]:
        """The value in eight bits, and the two ends of its range."""
        n, i = e
        if self.is_whole(e) and not shifted:
            return [(self.new[id(n)], j) for j in range(3)]
        int8 = int8 and self.dtype != "int8"
        if (e, shifted, int8) not in self._whole:
            self._whole[e, shifted, int8] = self._quantized(e, shifted, int8)
        return self._whole[e, shifted, int8]

    def _quantized(self, e: Entry, shifted: bool, int8: bool) -> list[Entry]:
        n, i = e
        if n.op is None and n.name in self.offline and not shifted:
            return [(Node(None, None, (), n.name + suffix, beside(n)), 0) for suffix in SUFFIXES]
        label = f"{n.name}_quantize" if n.op is None else f"{n.name}_{outputs.told(n, i)}_quantize"
        source = [self.floats(e)]
        if shifted:
            node = self.make("_contrib_quantize_asym", label, source, n)
        else:
            node = self.make("_contrib_quantize_v2", label, source, n, out_type="int8" if int8 else self.dtype)
        self.layers[id(node)] = output_name(e)
        return [(node, j) for j in range(3)]

    def visit(self, n: Node) -> None:
        if id(n) not in self.found:
            inputs = [self.floats(e) for e in n.inputs]
            forward = n.forward and self.new[id(n.forward)]
            same = all(a == b for a, b in zip(inputs, n.inputs)) and forward is n.forward
            self.new[id(n)] = n if same else Node(n.op, n.params, inputs, n.name, n.attrs, forward)
            return
        q = self.found[id(n)]
        arrays, ranges = [], []
        for i, e in enumerate(n.inputs):
            if i in q.floats:
                arrays.append(self.floats(e))
            else:
                whole, *ends = self.wholes(e, i in q.shifted, i in q.int8)
                arrays.append(whole)
                ranges += ends
        op = tables.ops.get(q.op)
        params = dict(n.params._given)
        if op.variadic:
            params[op.count] = len(n.inputs)
        node = Node(op, op.parse(params), [*arrays, *ranges], _PREFIX + n.name, n.attrs)
        if op.facets.get("calibrates") == "output":
            self.layers[id(node)] = output_name((n, 0))
        if q.sums:
            node = self.make(
                "_contrib_requantize", f"requantize_{n.name}", [(node, j) for j in range(3)], n, out_type=self.dtype
            )
            self.layers[id(node)] = output_name((n, 0))
        self.new[id(n)] = node


def quantized(
    symbol: Symbol,
    *,
    excluded: Collection[str] = (),
    excluded_operators: Collection[str] = (),
    offline: Collection[str] = (),
    dtype: str = "int8",
    mode: str = "smart",
    uncalibrated: bool = False,
) -> Plan:
    """The graph of a symbol over eight bits, as far as its operators have such forms.

    Parameters
    ----------
    symbol : Symbol
    excluded, excluded_operators : collection of str
        Nodes, and operators, that stay in float.
    offline : collection of str
        Variables whose quantised values and ranges the graph takes as variables (`SUFFIXES`).
    dtype : {'int8', 'uint8', 'auto'}
        Of what is quantised while the graph runs; 'auto' is decided by calibration.
    mode : {'full', 'smart'}
        Quantise all that can be, or what lies between operators that gain by it.
    uncalibrated : bool
        Ranges will not be known beforehand, so that what cannot do without stays in float.
    """
    nodes = topo(symbol._heads)
    found, left = _chosen(nodes, excluded, excluded_operators, dtype)
    if uncalibrated:
        for n in nodes:
            q = found.get(id(n))
            if q is not None and tables.ops.get(q.op).facets.get("calibrates") == "output":
                del found[id(n)]
                left[n.name] = "it needs calibration"
    if mode == "smart":
        kept = _between(nodes, found)
        left.update({n.name: "it is between no layers that gain" for n in nodes if id(n) in found.keys() - kept})
        found = {i: q for i, q in found.items() if i in kept}
    walk = _Walk(found, offline, dtype)
    for n in nodes:
        walk.visit(n)
    heads = [walk.floats(e) for e in symbol._heads]
    layers = [walk.layers[id(n)] for n in topo(heads) if id(n) in walk.layers]
    return Plan(Symbol(heads), [*dict.fromkeys(layers)], left)


def calibrated(symbol: Symbol, table: Mapping[str, tuple[float, float]]) -> Symbol:
    """A quantised graph with ranges, by the names of the values of the graph that it was made of."""
    swap: dict[int, Node] = {}
    for n in topo(symbol._heads):
        inputs = [(swap[id(m)], i) for m, i in n.inputs]
        params, kind = n.params, None if n.op is None else n.op.facets.get("calibrates")
        if kind is not None:
            source = n.inputs[0] if kind == "input" else (n, 0)
            name = output_name(source)
            ends = table.get(name, table.get(name.removeprefix(_PREFIX)))
            if ends is not None:
                low, high = map(float, ends)
                params = n.op.parse({**n.params._given, "min_calib_range": low, "max_calib_range": high})
        same = params is n.params and all(a == b for a, b in zip(inputs, n.inputs))
        swap[id(n)] = n if same else Node(n.op, params, inputs, n.name, n.attrs, n.forward and swap[id(n.forward)])
    return Symbol([(swap[id(n)], i) for n, i in symbol._heads])
