"""DGL's operators on graphs in csr storage: what is left to chance, and what is refused."""

import collections
import itertools

import numpy as np
import pytest

import mxcore as mx
from mxcore import nd

N = 6
GRAPH = np.arange(N * N).reshape(N, N) * (1 - np.eye(N, dtype=int))
C = nd.contrib


def graph(a=GRAPH):
    return nd.sparse.csr_matrix(nd.array(a), dtype="int64")


def ids(*vertices):
    return nd.array(vertices, dtype="int64")


def neighbours(count, chances=None, times=600):
    """How often each set of vertices is taken from those of vertex 0."""
    g, found = graph(), collections.Counter()
    seeds = [ids(0)] * times  # of one call, whose samples do not depend on one another
    options = {"num_neighbor": count, "max_num_vertices": N}
    if chances is None:
        made = C.dgl_csr_neighbor_uniform_sample(g, *seeds, num_args=times + 1, **options)
    else:
        made = C.dgl_csr_neighbor_non_uniform_sample(g, nd.array(chances), *seeds, num_args=times + 2, **options)
    for edges in made[times : 2 * times]:
        found[tuple(edges.indices.asnumpy().tolist())] += 1
    return found


def fits(found, chances):
    """Chi-square, at one in a million."""
    n = sum(found.values())
    assert {*found} <= {k for k, v in chances.items() if v}
    x = sum((found[k] - n * v) ** 2 / (n * v) for k, v in chances.items() if v)
    freedom = sum(v > 0 for v in chances.values()) - 1
    assert x < freedom + 7 * (2 * freedom) ** 0.5 + 12, (x, freedom)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_all_neighbours_are_equally_likely(count):
    mx.random.seed(count)
    sets = [*itertools.combinations(range(1, N), count)]
    fits(neighbours(count), dict.fromkeys(sets, 1 / len(sets)))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_neighbours_come_by_their_probabilities(count):
    """One after the other, each by its share of what is left."""
    mx.random.seed(count)
    chances = [0.5, 1, 2, 3, 4, 0]
    want = collections.Counter()
    for order in itertools.permutations(range(1, N), count):
        left, p = sum(chances[1:]), 1.0
        for v in order:
            p *= chances[v] / left
            left -= chances[v]
        want[tuple(sorted(order))] += p
    fits(neighbours(count, chances), want)


def test_neighbours_that_have_no_probability_come_last():
    ((found, _),) = neighbours(3, [1, 0, 2, 0, 0, 0], times=1).items()
    assert 2 in found and len(found) == 3


def test_samples_follow_the_seed():
    def draw():
        made = C.dgl_csr_neighbor_uniform_sample(graph(), ids(0, 3), num_hops=2, max_num_vertices=5)
        return [a.asnumpy().tolist() for a in made]

    mx.random.seed(5)
    first = [draw() for _ in range(6)]
    mx.random.seed(5)
    assert first == [draw() for _ in range(6)] and any(d != first[0] for d in first)


def test_what_was_sampled_made_compact():
    """Edges keep the vertices that they join, and the mapping tells their ids."""
    mx.random.seed(2)
    found, edges, hops = C.dgl_csr_neighbor_uniform_sample(graph(), ids(1), num_hops=1, max_num_vertices=8)
    n = int(found[-1].asscalar())
    new, old = C.dgl_graph_compact(edges, found, return_mapping=True, graph_sizes=(n,))
    vertices, (rows, cols) = found.asnumpy()[:n], np.nonzero(old.asnumpy())
    assert new.data.asnumpy().tolist() == [*range(2)] and hops.asnumpy()[:n].tolist() == (vertices != 1).tolist()
    assert old.asnumpy()[rows, cols].tolist() == GRAPH[vertices[rows], vertices[cols]].tolist()
    new.check_format()


def test_graphs_in_symbols():
    g, s = mx.sym.var("g", stype="csr"), mx.sym.var("s")
    sample = mx.sym.contrib.dgl_csr_neighbor_uniform_sample(
        g, s, num_args=2, num_neighbor=9, max_num_vertices=7, name="q"
    )
    assert sample.list_outputs() == ["q_output0", "q_output1", "q_output2"]
    assert sample.infer_shape(g=(9, 9), s=(3,))[1] == [(8,), (7, 9), (7,)]
    assert sample.infer_type(g="int64", s="int64")[1] == [np.int64] * 3
    found = mx.sym.contrib.dgl_adjacency(g).bind(mx.cpu(), {"g": graph()}).forward()[0]
    assert found.stype == "csr" and found.asnumpy().tolist() == (GRAPH > 0).astype(int).tolist()


BAD = {
    "edge_id: a row that there is not": (IndexError, lambda: C.edge_id(graph(), ids(0, N), ids(0, 0))),
    "edge_id: lengths": (ValueError, lambda: C.edge_id(graph(), ids(0, 1), ids(0))),
    "subgraph: order": (ValueError, lambda: C.dgl_subgraph(graph(), ids(1, 0), return_mapping=False)),
    "subgraph: vertices": (IndexError, lambda: C.dgl_subgraph(graph(), ids(-1, 0), return_mapping=False)),
    "subgraph: vectors": (ValueError, lambda: C.dgl_subgraph(graph(), nd.ones((2, 2)), return_mapping=False)),
    "sample: vertices": (IndexError, lambda: C.dgl_csr_neighbor_uniform_sample(graph(), ids(N))),
    "sample: room": (ValueError, lambda: C.dgl_csr_neighbor_uniform_sample(graph(), ids(0, 1), max_num_vertices=1)),
    "sample: square": (ValueError, lambda: C.dgl_csr_neighbor_uniform_sample(graph(np.ones((2, 3))), ids(0))),
    "sample: probabilities": (
        ValueError,
        lambda: C.dgl_csr_neighbor_non_uniform_sample(graph(), nd.array([1.0] * 5 + [-1]), ids(0)),
    ),
    "sample: how many": (ValueError, lambda: C.dgl_csr_neighbor_non_uniform_sample(graph(), nd.ones(2), ids(0))),
    "compact: sizes": (
        ValueError,
        lambda: C.dgl_graph_compact(graph(), ids(0, 1, 2), return_mapping=False, graph_sizes=(1,)),
    ),
    "compact: pairs": (
        ValueError,
        lambda: C.dgl_graph_compact(graph(), ids(0, 1), graph(), return_mapping=False, graph_sizes=(1,)),
    ),
    "compact: an edge to nowhere": (
        ValueError,
        lambda: C.dgl_graph_compact(graph(), ids(0, 1, 2), return_mapping=False, graph_sizes=(2,)),
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_refused(what):
    kind, call = BAD[what]
    with pytest.raises(kind) as e:
        made = call()
        for a in made if isinstance(made, list) else [made]:
            a.asnumpy()
    assert isinstance(e.value, mx.MXNetError)
