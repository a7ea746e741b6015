"""Every format with a fixed seed, briefly; and the kit itself against readers that are broken."""

import collections
import gzip
import io
import json
import pickle
import random
import zipfile

import pytest

from tests.fuzz import mutators
from tests.fuzz.child import damaged
from tests.fuzz.formats import FORMATS
from tests.fuzz.parent import run

CASES = 40  # of each format; CI runs more, with another seed each time


def test_every_format_briefly(tmp_path):
    said = []
    report = run(list(FORMATS), "fixed", cases=CASES * len(FORMATS), limit=60, keep=tmp_path, tell=said.append)
    assert not report.failures, "\n".join(said)
    assert report.cases == CASES * len(FORMATS) and all(sum(c.values()) == CASES for c in report.counts.values())
    total = sum(report.counts.values(), collections.Counter())
    assert total["refused"] > CASES and total["read"] > CASES  # damage is met, and does not all end at the first bytes


@pytest.mark.parametrize(
    "name, kind",
    [("fault", "KeyError"), ("hungry", "MemoryError"), ("crash", "the process ended: SIGSEGV"), ("hang", "no answer")],
)
def test_the_kit_finds(name, kind, tmp_path):
    said = []
    report = run(
        [name],
        "1",
        cases=6 if name == "fault" else 2,
        limit=2,
        keep=tmp_path,
        tell=said.append,
        module="tests.fuzz.broken",
    )
    (failure,) = report.failures.values()
    assert failure.kind == kind and failure.count == report.cases
    assert f"--formats '{name}' --case {failure.seed}" in said[0] and len(said) == 1
    (kept,) = tmp_path.iterdir()
    assert (kept / "a").read_bytes() == damaged(name, failure.seed, [{"a": b"sound"}])["a"]  # the seed gives it again
    assert report.cases == (6 if name == "fault" else 2)


def test_a_reader_that_refuses_sound_files_is_told():
    report = run(["no such format"], "1", cases=1, tell=lambda text: None)
    (failure,) = report.failures.values()
    assert failure.name == "the start" and "KeyError" in failure.text


def cases(data, n=400):
    return [mutators.mutated(data, random.Random(i)) for i in range(n)]


def test_damage_is_decided_by_the_seed_and_stays_small():
    for data in (b"", b"x", bytes(100), b"1,2\n3,4\n"):
        found = cases(data)
        assert found == cases(data) and len(set(found)) > 50
        assert max(map(len, found)) < 4 * (mutators.MOST + 300_100)


def test_damage_reaches_what_is_inside():
    packed = gzip.compress(b"some text, 1, 2, 3")
    inner = set()
    for data in cases(packed):
        try:
            inner.add(gzip.decompress(data))
        except Exception:
            pass
    assert len(inner) > 100
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("a", b"some text")
    assert sum(zipfile.is_zipfile(io.BytesIO(d)) for d in cases(out.getvalue())) > 100
    graph = json.dumps({"nodes": [{"name": "a", "inputs": []}], "heads": [[0, 0]]}).encode()
    trees = set()
    for data in cases(graph):
        try:
            trees.add(json.dumps(json.loads(data)))
        except (ValueError, RecursionError):
            pass
    assert len(trees) > 100
    pickled, loads = pickle.dumps({0: [1, 2, "x"]}), 0
    for data in cases(pickled):
        try:
            list(mutators.pickletools.genops(data))
            loads += data != pickled
        except Exception:
            pass
    assert loads > 100
