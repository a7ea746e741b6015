"""Samples of the operators of :mod:`mxcore.ops.sparse`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample

__all__ = ["SAMPLES"]


_MOVED = [
    Sample((2, 3), params={"scalar": 1.5}, dtypes="float16 float32 float64"),
    Sample((2, 3)),
    Sample((1, 5), params={"scalar": "-2", "is_int": False}),
    Sample(Ints((2, 3), 3, 9), params={"scalar": 2.6}, dtypes="uint8 int8 int32 int64"),
    Sample(Ints((2, 3), 3, 9), params={"scalar": 2.5, "is_int": False}, dtypes="int8 int64"),
    Sample((0, 3), params={"scalar": 2}),
]


#: A graph with the ids of its edges, a vertex without any, and one with an edge to itself.
_GRAPH = np.array([[0, 1, 0, 2, 3], [4, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 5, 6, 7, 8], [9, 0, 10, 11, 0]], np.int64)
_CSR = "csr input only"


def _graphs(*cases: Any) -> list[Sample]:
    return [Sample(_GRAPH, *inputs, params=params, grad=False, mxnet=_CSR) for inputs, params in cases]


def _ids(*vertices: int) -> np.ndarray[Any, Any]:
    return np.array(vertices, np.int64)


def _sampled(fixed: int) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """What every sample of a graph holds to."""

    def check(inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        graph, seeds = np.asarray(inputs[0]), [np.asarray(s) for s in inputs[fixed:]]
        n = len(seeds)
        for i, first in enumerate(seeds):
            ids, edges, *chances, hops = (np.asarray(outputs[i + n * j]) for j in range(2 + fixed))
            count = ids[-1]
            assert 0 < count < len(ids) and {*first} <= {*ids[:count]} and (np.diff(ids[:count]) > 0).all()
            assert {*ids[:count][hops[:count] == 0]} == {*first}
            rows, cols = np.nonzero(edges)
            assert not len(rows) or rows.max() < count
            assert (edges[rows, cols] == graph[ids[rows], cols]).all()
            for chance in chances:
                assert (chance[:count] == np.asarray(inputs[1])[ids[:count]]).all()

    return check


def _samplers(fixed: int) -> list[Sample]:
    chances = [np.array([0.5, 1.0, 0.0, 2.0, 4.0], np.float32)][: fixed - 1]
    return [
        Sample(_GRAPH, *chances, *seeds, params=params, grad=False, check=_sampled(fixed), mxnet=_CSR)
        for seeds, params in (
            ([_ids(0)], {"num_args": fixed + 1, "max_num_vertices": 5}),
            ([_ids(3, 0), _ids(2)], {"num_args": fixed + 2, "num_hops": 3, "num_neighbor": 1, "max_num_vertices": 6}),
            ([_ids(4, 4, 1)], {"num_args": fixed + 1, "num_hops": 2, "num_neighbor": 4, "max_num_vertices": 3}),
            ([_ids(1)], {"num_args": fixed + 1, "num_hops": 0, "max_num_vertices": 2}),
        )
    ]


SAMPLES = {
    "_contrib_edge_id": [
        *_graphs(
            ((_ids(0, 0, 3, 2), _ids(3, 2, 3, 0)), {}),
            ((np.array([0.0, 4.0]), np.array([4.0, 2.0])), {}),
            ((_ids(0, 1), _ids(-1, 5)), {}),
            ((_ids(), _ids()), {}),
        ),
        Sample(np.zeros((2, 3)), _ids(1), _ids(2), grad=False, mxnet=_CSR),
        Sample([[0.5, 0.0]], _ids(0, 0), _ids(0, 1), grad=False, mxnet=_CSR),
    ],
    "_contrib_dgl_adjacency": [
        *_graphs(((), {})),
        Sample(np.zeros((3, 3)), grad=False, mxnet=_CSR),
        Sample([[0.5, -1.0], [0.0, 2.0]], grad=False, mxnet=_CSR),
    ],
    "_contrib_dgl_subgraph": _graphs(
        ((_ids(0, 1, 3),), {"num_args": 2, "return_mapping": True}),
        ((_ids(0, 3, 4), _ids(2)), {"num_args": 3, "return_mapping": True}),
        ((_ids(3),), {"num_args": 2, "return_mapping": False}),
        ((_ids(0, 1, 2, 3, 4),), {"num_args": 2, "return_mapping": True}),
        ((_ids(),), {"num_args": 2, "return_mapping": False}),
    ),
    "_contrib_dgl_graph_compact": [
        Sample(*graphs, params=params, grad=False, mxnet=_CSR)
        for graphs, params in (
            (
                (_GRAPH[[0, 1, 3]] * [1, 1, 0, 1, 0], _ids(0, 1, 3, 3)),
                {"num_args": 2, "return_mapping": True, "graph_sizes": (3,)},
            ),
            (
                (np.eye(3), np.ones((4, 1)), _ids(2, 0, 1, 3), _ids(0, 0, 1)),
                {"num_args": 4, "return_mapping": False, "graph_sizes": (3, 1)},
            ),
            ((np.zeros((2, 4)), _ids(3, 0, 1)), {"num_args": 2, "return_mapping": True, "graph_sizes": "(1,)"}),
        )
    ],
    "_contrib_dgl_csr_neighbor_uniform_sample": _samplers(1),
    "_contrib_dgl_csr_neighbor_non_uniform_sample": _samplers(2),
    "cast_storage": [
        Sample((3, 4), params={"stype": "default"}, grad=False),
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params={"stype": "csr"}, grad=False),
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params={"stype": "row_sparse"}, grad=False),
    ]
    + [
        Sample(*v, params={"stype": t}, grad=False)
        for t in ("default", "row_sparse", "csr")
        for v in ([np.zeros((3, 2))], [(1, 5)])
    ]
    + [
        Sample(
            np.arange(12.0).reshape(3, 2, 2) - 3,
            params={"stype": "row_sparse"},
            grad=False,
            dtypes="float16 float32 float64",
        ),
        Sample(Ints((3, 4), 0, 2), params={"stype": "csr"}, dtypes="uint8 int32 int64"),
        Sample((5,), params={"stype": "row_sparse"}, grad=False),
    ],
    "_sparse_retain": [
        Sample((4, 3), i, grad=False, mxnet="row_sparse input only")
        for i in (
            np.array([2.0, 0.0]),
            np.array([1], np.int32),
            np.array([0, 1, 2, 3], np.int64),
            np.array([2.0, 2.0]),
            np.zeros(0, np.int64),
        )
    ],
    "_contrib_getnnz": [
        Sample([[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], params=q, grad=False, mxnet="csr input only")
        for q in ({"axis": 1}, {"axis": 0}, {}, {"axis": "None"})
    ],
    "_scatter_elemwise_div": [
        Sample((2, 3), (2, 3), domain=(0.5, 2.0), dtypes="float16 float32 float64"),
        Sample((4, 1), (4, 1), domain=(-2.0, -0.5)),
        Sample((7,), (7,), domain=(0.5, 2.0)),
        Sample([[1.0, 0.0]], [[0.0, 0.0]], grad=False),
    ],
    "_scatter_plus_scalar": _MOVED,
    "_scatter_minus_scalar": _MOVED,
}
