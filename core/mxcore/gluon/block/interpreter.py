"""Runs a symbol node by node with eager operators, so that autograd and hooks see every one."""

from __future__ import annotations

import json

from ... import ndarray as nd
from ...base import error

__all__ = ["Interpreter"]

#: Where the eager face keeps operators whose registered name begins so.
_FAMILIES = {"_contrib_": "contrib", "_linalg_": "linalg", "_image_": "image", "_sparse_": "sparse"}


def _function(op):
    """The eager function of a registered operator."""
    for prefix, family in _FAMILIES.items():
        if op.startswith(prefix):
            found = getattr(getattr(nd, family, None), op[len(prefix) :], None)
            if found is not None:
                return found
    for place in (nd, getattr(nd, "_internal", None)):
        found = getattr(place, op, None)
        if found is not None:
            return found
    raise error(AttributeError, f"the graph uses operator {op}, which has no eager form")


class Interpreter:
    """A graph as a list of calls.

    Parameters
    ----------
    symbol : Symbol
        The graph. Control-flow operators, which hold graphs of their own, are refused.
    """

    def __init__(self, symbol):
        graph = json.loads(symbol.tojson())
        self._heads = [(h[0], h[1]) for h in graph["heads"]]
        self._calls = []
        for node in graph["nodes"]:
            attrs = node.get("attrs", node.get("param", {}))
            inputs = [(i[0], i[1]) for i in node["inputs"]]
            if node.get("subgraphs"):
                raise error(
                    NotImplementedError,
                    f"operator {node['op']} '{node['name']}' holds a graph of its own and runs through an "
                    "executor only: use symbol.bind",
                )
            function = None if node["op"] == "null" else _function(node["op"])
            # Attributes in double underscores are notes to the graph, not parameters of the operator.
            params = {k: v for k, v in attrs.items() if not (k.startswith("__") and k.endswith("__"))}
            self._calls.append((function, node["op"], node["name"], inputs, params))

    def __call__(self, values, monitor=None, monitor_all=False):
        """Compute the outputs.

        Parameters
        ----------
        values : dict of str to NDArray
            Arrays for all inputs, parameters and auxiliary states by name.
        monitor : callable, optional
            Called as ``monitor(name, operator, array)`` for every output.
        monitor_all : bool, default False
            Call it for the inputs of operators too.

        Returns
        -------
        list of NDArray
        """
        results = []
        for function, op, name, inputs, params in self._calls:
            if function is None:
                results.append([values[name]])
                continue
            args = [results[node][index] for node, index in inputs]
            if monitor_all:
                for (node, _), array in zip(inputs, args):
                    monitor(f"{name}_{self._calls[node][2]}", op, array)
            outputs = function(*args, **params)
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            if monitor is not None:
                for i, array in enumerate(outputs):
                    monitor(f"{name}_output" if len(outputs) == 1 else f"{name}_output{i}", op, array)
            results.append(outputs)
        return [results[node][index] for node, index in self._heads]
