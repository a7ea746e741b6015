"""Graphs as csr matrices, for DGL: row u holds the edges from vertex u, by where they lead, with their ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.op import op
from ..._core.params import Params
from ...parameters import Bool, Int, Shape
from ...stypes import CSR
from ...typing import Array, Call
from ..random import variates
from .operators import csr_from, dense_of, rows_of, to_csr

__all__ = ["adjacency", "edge_id", "graph_compact", "non_uniform_sample", "subgraph", "uniform_sample"]

_INT64 = np.dtype("int64")


def _graph(xp: Any, x: Any) -> CSR:
    return x if isinstance(x, CSR) else to_csr(xp, dense_of(xp, x))


def _vertices(xp: Any, x: Any, n: int, what: str = "vertices") -> Any:
    """Vertices as int64, all of which there are."""
    ids = dense_of(xp, x).astype(_INT64).reshape(-1)
    if ids.shape[0]:
        least, most = ids.min().item(), ids.max().item()
        if not 0 <= least <= most < n:
            raise IndexError(f"{what} must lie in [0, {n}), got {least} to {most}")
    return ids


def _of_matrix(shape: Any, what: str = "the graph") -> Any:
    if len(shape) != 2:
        raise ValueError(f"{what} must be a matrix, got shape {shape}")
    return shape


# -- edges ---------------------------------------------------------------------------------------------------------
def _pairs(xp: Any, data: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """The rows and columns of the edges that are asked for."""
    if data.dtype.kind in "ub":
        raise ValueError(f"ids of {data.dtype} cannot say -1, that there is no edge; give the graph others")
    return _vertices(xp, u, data.shape[0], "rows"), dense_of(xp, v).astype(_INT64)


@op("_contrib_edge_id", inputs="data u v", grad=None, helpers={"pairs": _pairs})
def edge_id(k: Call, p: Params, data: Array, u: Array, v: Array) -> Array:
    """The value at row ``u[i]`` and column ``v[i]`` of a csr matrix; -1 where nothing is stored.

    Parameters
    ----------
    data : array, csr
        Of a dense one, what is not zero is stored. Of a dtype with numbers below 0.
    u, v : array (n,)
        Of any dtype. A row that there is not is an IndexError; a column that there is not holds nothing.
    """
    xp = k.xp
    rows, cols = _pairs(xp, data, u, v)
    data = _graph(xp, data)
    if not data.indices.shape[0]:
        return xp.full(rows.shape, -1, data.dtype)
    n = data.shape[1]
    keys = rows_of(xp, data) * n + data.indices
    wanted = xp.where((cols >= 0) & (cols < n), rows * n + cols, -1)
    at = xp.minimum(xp.searchsorted(keys, wanted), keys.shape[0] - 1)
    return xp.where(keys[at] == wanted, data.values[at], xp.full((1,), -1, data.dtype))


@edge_id.shape
def _(p: Params, ins: list[Any]) -> Any:
    _of_matrix(ins[0])
    if len(ins[1]) != 1 or ins[1] != ins[2]:
        raise ValueError(f"u {ins[1]} and v {ins[2]} must be vectors of one length")
    return [ins[1]]


edge_id.dtype(lambda p, ins, outs: (ins, [ins[0]]))
edge_id.storage(lambda p, stypes: ["default"])


@op("_contrib_dgl_adjacency", inputs="data", grad=None)
def adjacency(k: Call, p: Params, data: Array) -> Any:
    """The adjacency matrix of a graph: csr, float32, 1 for every edge.

    Parameters
    ----------
    data : array, csr
        The graph, with the ids of its edges.
    """
    found = _graph(k.xp, data)
    ones = k.xp.ones(found.values.shape[0], np.float32)
    return found.with_parts(found.indptr.copy(), found.indices.copy(), ones)


adjacency.shape(lambda p, ins: [_of_matrix(ins[0])])
adjacency.dtype(lambda p, ins, outs: (ins, [np.dtype("float32")]))
adjacency.storage(lambda p, stypes: ["csr"])


# -- parts of a graph ----------------------------------------------------------------------------------------------
def _numbered(xp: Any, rows: Any, cols: Any, ids: Any, n: int) -> tuple[CSR, CSR]:
    """A graph of `n` vertices with edges counted from 0, and the same with their ids in another graph."""
    most = np.iinfo(ids.dtype).max if ids.dtype.kind in "iu" else 2 ** (np.finfo(ids.dtype).nmant + 1)
    if rows.shape[0] > most + 1:
        raise ValueError(f"a graph of {ids.dtype} cannot number {rows.shape[0]} edges; give it ids of a wider dtype")
    number = xp.arange(rows.shape[0]).astype(ids.dtype)
    order = xp.argsort(rows * max(n, 1) + cols, kind="stable")
    rows, cols = rows[order], cols[order]
    return (csr_from(xp, (n, n), rows, cols, number[order]), csr_from(xp, (n, n), rows, cols, ids[order]))


def _listed(parts: list[tuple[CSR, CSR]], mapping: bool) -> Any:
    """The graphs, and behind them, if wanted, what they were made of."""
    found = [new for new, _ in parts] + ([old for _, old in parts] if mapping else [])
    return found[0] if len(found) == 1 else found


def _names(count: int) -> list[str]:
    return [f"output{i}" for i in range(count)]


@op(
    "_contrib_dgl_subgraph",
    inputs="graph data*",
    num_args=Int(ge=2),
    return_mapping=Bool(),
    arg_names=lambda p: [f"data{i}" for i in range(p.num_args - 1)],
    outputs=lambda p: _names((p.num_args - 1) * (1 + p.return_mapping)),
    grad=None,
)
def subgraph(k: Call, p: Params, graph: Array, *data: Array) -> Any:
    """The graphs that some of the vertices span: these vertices, and the edges among them.

    Parameters
    ----------
    graph : array, csr
        With the ids of its edges.
    data : arrays (n,)
        The vertices of each graph, ascending. Vertex i of it is ``data[i]`` of the whole.
    num_args : int
        How many arrays are given; counted for you.
    return_mapping : bool
        Also return, behind the graphs, the same ones with the ids that their edges have in the whole graph; in the
        graphs themselves edges are counted from 0.
    """
    xp, graph = k.xp, _graph(k.xp, graph)
    return _listed([_spanned(xp, graph, _ascending(xp, d, graph.shape[0])) for d in data], p.return_mapping)


def _ascending(xp: Any, data: Any, n: int) -> Any:
    ids = _vertices(xp, data, n)
    if ids.shape[0] > 1 and (ids[1:] < ids[:-1]).any().item():
        raise ValueError("the vertices of a subgraph must ascend; sort them")
    return ids


def _spanned(xp: Any, graph: CSR, ids: Any) -> tuple[CSR, CSR]:
    n = ids.shape[0]
    if not n:
        return _numbered(xp, ids, ids, graph.values[:0], 0)
    owner, at = _edges_of(xp, graph, ids)
    cols = graph.indices[at]
    place = xp.searchsorted(ids, cols, side="right") - 1  # of a vertex that comes twice the last
    kept = xp.flatnonzero((place >= 0) & (ids[xp.maximum(place, 0)] == cols))
    return _numbered(xp, owner[kept], place[kept], graph.values[at[kept]], n)


def _edges_of(xp: Any, graph: CSR, vertices: Any) -> tuple[Any, Any]:
    """For each edge of some vertices: which of them it is of, and where it is stored."""
    count = xp.diff(graph.indptr)[vertices]
    owner = xp.repeat(xp.arange(vertices.shape[0]), count)
    before = xp.cumsum(count) - count
    return owner, xp.arange(owner.shape[0]) - before[owner] + graph.indptr[vertices][owner]


@subgraph.shape
def _(p: Params, ins: list[Any]) -> Any:
    _of_matrix(ins[0])
    if bad := [s for s in ins[1:] if len(s) != 1]:
        raise ValueError(f"vertices must be vectors, got shape {bad[0]}")
    return [(*s, *s) for s in ins[1:]] * (1 + p.return_mapping)


subgraph.dtype(lambda p, ins, outs: (ins, [ins[0]] * len(outs)))
subgraph.storage(lambda p, stypes: ["csr"] * ((p.num_args - 1) * (1 + p.return_mapping)))


@op(
    "_contrib_dgl_graph_compact",
    inputs="graph_data*",
    num_args=Int(ge=2),
    return_mapping=Bool(),
    graph_sizes=Shape(),
    arg_names=lambda p: [f"graph_data{i}" for i in range(p.num_args)],
    outputs=lambda p: _names(p.num_args // 2 * (1 + p.return_mapping)),
    grad=None,
)
def graph_compact(k: Call, p: Params, *graph_data: Array) -> Any:
    """Graphs that were sampled, without room for further vertices, and with vertices counted from 0.

    Parameters
    ----------
    graph_data : arrays
        First the graphs, csr, as `_contrib_dgl_csr_neighbor_uniform_sample` gives them: row i holds the edges of the
        i-th vertex, to vertices of the whole graph. Then, for each, its vertices, the last entry telling how many.
    num_args : int
        How many arrays are given, twice the number of graphs; counted for you.
    return_mapping : bool
        Also return, behind the graphs, the same ones with the ids that their edges had; in the graphs themselves edges
        are counted from 0. MXNet leaves these graphs unfilled.
    graph_sizes : tuple of int
        How many vertices each graph has.
    """
    xp, n = k.xp, p.num_args // 2
    parts = []
    for graph, ids, size in zip(graph_data[:n], graph_data[n:], p.graph_sizes):
        graph, ids = _graph(xp, graph), dense_of(xp, ids).astype(_INT64)
        if ids[-1].item() != size:
            raise ValueError(f"graph_sizes gives {size} vertices, the vertices end with {ids[-1].item()}")
        ids, last = _vertices(xp, ids[:size], graph.shape[1]), int(graph.indptr[size].item())
        rows, cols = rows_of(xp, graph)[:last], graph.indices[:last]
        order = xp.argsort(ids, kind="stable")
        place = xp.minimum(xp.searchsorted(ids[order], cols), max(size - 1, 0))
        cols_at = order[place]
        if cols.shape[0] and (ids[cols_at] != cols).any().item():
            raise ValueError(
                "an edge leads to a vertex that is not among those of the graph: sampling stopped at "
                "max_num_vertices; take fewer seeds, hops or neighbours, or more vertices"
            )
        parts.append(_numbered(xp, rows, cols_at, graph.values[:last], size))
    return _listed(parts, p.return_mapping)


@graph_compact.shape
def _(p: Params, ins: list[Any]) -> Any:
    n = p.num_args // 2
    if p.num_args % 2 or len(p.graph_sizes) != n:
        raise ValueError(
            f"{p.num_args} arrays and {len(p.graph_sizes)} graph_sizes; each graph needs its vertices and a size"
        )
    for graph, ids, size in zip(ins[:n], ins[n:], p.graph_sizes):
        if not 0 <= size < ids[0] or size > _of_matrix(graph)[0] or len(ids) != 1:
            raise ValueError(f"a graph {graph} with vertices {ids} cannot have {size} of them")
    return [(s, s) for s in p.graph_sizes] * (1 + p.return_mapping)


graph_compact.dtype(lambda p, ins, outs: (ins, [*ins[: p.num_args // 2]] * (1 + p.return_mapping)))
graph_compact.storage(lambda p, stypes: ["csr"] * (p.num_args // 2 * (1 + p.return_mapping)))


# -- neighbours, by chance -----------------------------------------------------------------------------------------
def _some(xp: Any, rng: Any, owner: Any, weights: Any, most: int) -> Any:
    """Which edges to take, ascending: at most so many of each owner, of which edges are in order."""
    n = owner.shape[0]
    # A race: who comes first, each after an exponential time of its own rate (Efraimidis & Spirakis, 2006).
    times = variates.exponential(rng, (n,), np.float64)
    if weights is not None:
        times = xp.where(weights > 0, times / xp.where(weights > 0, weights, 1), np.inf)
    order = xp.argsort(times, kind="stable")
    order = order[xp.argsort(owner[order], kind="stable")]
    rank = xp.arange(n) - xp.searchsorted(owner, owner)
    taken = xp.zeros(n, np.bool_)
    taken[order] = rank < most
    return xp.flatnonzero(taken)


def _walk(k: Call, p: Params, rng: Any, graph: CSR, seeds: Any, weights: Any) -> tuple[Any, Any, Any, Any]:
    """The vertices reached, in order, the hops to each, and the edges taken: where from, and where they are stored."""
    xp, most = k.xp, p.max_num_vertices
    found = frontier = seeds[xp.unique(xp.unique(seeds, return_index=True)[1])]  # in their order
    hops = [xp.zeros(found.shape[0], _INT64)]
    taken = [(found[:0], found[:0])]
    for hop in range(p.num_hops):
        room = most - found.shape[0]
        if not (room and frontier.shape[0]):
            break
        owner, at = _edges_of(xp, graph, frontier)
        some = _some(xp, rng, owner, None if weights is None else weights[graph.indices[at]], p.num_neighbor)
        owner, at = owner[some], at[some]
        cols = graph.indices[at]
        every, first = xp.unique(cols, return_index=True)
        there, times = xp.unique(xp.concatenate([found, every]), return_counts=True)
        first = xp.unique(first[times[xp.searchsorted(there, every)] == 1])
        if first.shape[0] >= room:  # whoever comes after the vertex that fills the room is not looked at
            first = first[:room]
            looked_at = xp.flatnonzero(owner <= owner[first[-1]])
            owner, at = owner[looked_at], at[looked_at]
        taken.append((frontier[owner], at))
        frontier = cols[first]
        found = xp.concatenate([found, frontier])
        hops.append(xp.full(frontier.shape[0], hop + 1, _INT64))
    order = xp.argsort(found, kind="stable")
    return found[order], xp.concatenate(hops)[order], *(xp.concatenate([t[i] for t in taken]) for i in range(2))


def _filled(xp: Any, n: int, values: Any) -> Any:
    out = xp.zeros(n, values.dtype)
    out[: values.shape[0]] = values
    return out


def _sampled(k: Call, p: Params, graph: Any, probability: Any, seed_arrays: Any) -> list[Any]:
    xp, rng, most = k.xp, k.rng, p.max_num_vertices
    graph = _graph(xp, graph)
    n, weights = graph.shape[0], None if probability is None else dense_of(xp, probability)
    if weights is not None and weights.shape[0] and not ((weights >= 0) & (weights < np.inf)).all().item():
        raise ValueError("probabilities must be finite, and not below 0")
    found: list[list[Any]] = [[], [], [], []]
    for seeds in seed_arrays:
        ids, hops, source, at = _walk(k, p, rng, graph, _vertices(xp, seeds, n, "seeds"), weights)
        out = _filled(xp, most + 1, ids)
        out[-1:] = ids.shape[0]
        row = xp.searchsorted(ids, source)
        order = xp.argsort(row, kind="stable")
        row, at = row[order], at[order]
        parts = (out, csr_from(xp, (most, n), row, graph.indices[at], graph.values[at]))
        chance = None if weights is None else _filled(xp, most, weights[ids])
        for values, value in zip(found, (*parts, chance, _filled(xp, most, hops))):
            values.append(value)
    return [v for values in found for v in values if v is not None]


_SAMPLING = {"num_hops": Int(1, ge=0), "num_neighbor": Int(2, ge=0), "max_num_vertices": Int(100, ge=1, le=2**31)}
_SAMPLED = """
    num_hops : int
        How far to go from the seeds.
    num_neighbor : int
        How many edges to take from each vertex, at most; different ones.
    max_num_vertices : int
        How many vertices the sample may have. When it has them, no further vertex is looked at; edges of the last one
        may lead to vertices that found no room.

    Notes
    -----
    Outputs, each once for every array of seeds: the vertices, ascending, (max_num_vertices + 1,), of which the last
    entry tells how many there are, and those between are 0; the edges taken, csr, (max_num_vertices, vertices of the
    graph), where row i holds those of the i-th vertex, with their ids;{more} the hops to each vertex,
    (max_num_vertices,).
"""


def _sampler_shapes(fixed: int) -> Any:
    def rule(p: Params, ins: list[Any]) -> list[Any]:
        graph, most, seeds = _of_matrix(ins[0]), p.max_num_vertices, ins[fixed:]
        if graph[0] != graph[1]:
            raise ValueError(f"the graph must have as many columns as rows, got {graph}")
        if fixed == 2 and ins[1] != graph[:1]:
            raise ValueError(f"each of {graph[0]} vertices needs a probability, got shape {ins[1]}")
        for s in seeds:
            if len(s) != 1 or s[0] > most:
                raise ValueError(f"seeds must be vectors of at most max_num_vertices, {most}, got shape {s}")
        per = [(most + 1,), (most, graph[0]), *[(most,)] * fixed]
        return [s for s in per for _ in seeds]

    return rule


def _sampler(fixed: int) -> Any:
    """What both samplers are declared with; `fixed` inputs stand before the seeds."""
    return {
        "params": {"num_args": Int(ge=fixed + 1), **_SAMPLING},
        "arg_names": lambda p: [f"seed_arrays{i}" for i in range(p.num_args - fixed)],
        "outputs": lambda p: _names((p.num_args - fixed) * (2 + fixed)),
        "random": True,
        "grad": None,
    }


@op(
    "_contrib_dgl_csr_neighbor_uniform_sample",
    inputs="csr_matrix seed_arrays*",
    **_sampler(1),
    doc="""Sample the neighbourhoods of vertices; all edges of a vertex are equally likely.

    Parameters
    ----------
    csr_matrix : array, csr
        The graph, with the ids of its edges.
    seed_arrays : arrays (n,)
        Vertices to begin with, of one sample each.
    num_args : int
        How many arrays are given; counted for you."""
    + _SAMPLED.format(more=""),
)
def uniform_sample(k: Call, p: Params, csr_matrix: Array, *seed_arrays: Array) -> Any:
    """See the operator."""
    return _sampled(k, p, csr_matrix, None, seed_arrays)


@op(
    "_contrib_dgl_csr_neighbor_non_uniform_sample",
    inputs="csr_matrix probability seed_arrays*",
    **_sampler(2),
    doc="""Sample the neighbourhoods of vertices, by the probabilities of the vertices that edges lead to.

    Parameters
    ----------
    csr_matrix : array, csr
        The graph, with the ids of its edges.
    probability : array (vertices,)
        How likely each vertex is, in relation to others. Those of 0 come last.
    seed_arrays : arrays (n,)
        Vertices to begin with, of one sample each.
    num_args : int
        How many arrays are given; counted for you."""
    + _SAMPLED.format(more=" the probability of each vertex,\n    (max_num_vertices,);"),
)
def non_uniform_sample(k: Call, p: Params, csr_matrix: Array, probability: Array, *seed_arrays: Array) -> Any:
    """See the operator."""
    return _sampled(k, p, csr_matrix, probability, seed_arrays)


for _fixed, _op in ((1, uniform_sample), (2, non_uniform_sample)):
    _op.shape(_sampler_shapes(_fixed))
    _op.storage(
        lambda p, stypes, fixed=_fixed: [t for t in ("default", "csr", *["default"] * fixed) for _ in stypes[fixed:]]
    )
uniform_sample.dtype(lambda p, ins, outs: (ins, [t for t in (_INT64, ins[0], _INT64) for _ in ins[1:]]))
non_uniform_sample.dtype(lambda p, ins, outs: (ins, [t for t in (_INT64, ins[0], ins[1], _INT64) for _ in ins[2:]]))
