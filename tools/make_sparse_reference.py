#!/usr/bin/env python3
"""Write docs/sparse.md: which storage types results have, as measured in MXNet 1.9.1.

    make_sparse_reference.py [--check]

What it says is in the golden file that the tests compare with. `--check` writes nothing and exits with 1 if the page
is not up to date.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "golden" / "data" / "sparse.json"
PAGE = ROOT / "docs" / "sparse.md"
KINDS = ("csr", "row_sparse", "default")
HEAD = """# Storage types of results

What MXNet 1.9.1 gives, call by call, and mxcore with it; `tools/make_sparse_reference.py` writes this page from the
golden file of the tests. `x` is a sparse array of the type at the head of a column, `d` a dense one; `default` is
dense. What is blank MXNet refuses; mxcore computes most of it. [differences.md](differences.md) says where results
differ.

Columns of a csr matrix rise in each row, each once. Places that come in another order are sorted, and values of one
place are added up: by `csr_matrix`, by loading and by unpickling. `row_sparse_array` sorts rows, and refuses one that
comes twice. Places outside the array are IndexErrors, whoever made them. `x.data`, `x.indices` and `x.indptr` are
copies, as in MXNet: what is written to them changes no array. Who means to write makes a new array of them.

A csr matrix is also a graph, whose row u holds the ids of the edges from vertex u: `mx.nd.contrib.edge_id`,
`dgl_adjacency`, `dgl_subgraph`, `dgl_graph_compact` and the samplers of neighbourhoods,
`dgl_csr_neighbor_uniform_sample` and `dgl_csr_neighbor_non_uniform_sample`, are those of DGL.
"""


def lines() -> Iterator[str]:
    """The lines of the page."""
    found = {name: None if facts is None else facts[0] for name, facts in json.loads(DATA.read_text()).items()}
    pairs = [(a, b) for a in KINDS for b in KINDS if {a, b} != {"default"}]
    two: dict[str, dict[tuple[str, str], str | None]] = {}
    one: dict[str, dict[str, str | None]] = {}
    for name, stype in found.items():
        *text, last = name.split(" ")
        if name.startswith("d(") or last not in KINDS:
            continue
        if text[-1] in KINDS:
            two.setdefault(" ".join(text[:-1]).strip(), {})[text[-1], last] = stype
        else:
            one.setdefault(" ".join(text).strip(), {})[last] = stype
    yield from HEAD.splitlines()
    yield from ["", "## One sparse array", "", "| call | csr | row_sparse |", "| --- | --- | --- |"]
    for text_, kinds in sorted(one.items()):
        yield f"| `{text_.replace('|', chr(92) + '|')}` | {kinds.get('csr') or ''} | {kinds.get('row_sparse') or ''} |"
    yield from ["", "## Two arrays", "", "| call | " + " | ".join(f"{a}, {b}" for a, b in pairs) + " |"]
    yield "| --- |" + " --- |" * len(pairs)
    for text_, results in sorted(two.items()):
        yield f"| `{text_}` | " + " | ".join(results.get(pair) or "" for pair in pairs) + " |"


def main() -> int:
    """Write the page, or compare it."""
    text = "\n".join(lines()) + "\n"
    if "--check" in sys.argv[1:]:
        return int(not PAGE.exists() or PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
