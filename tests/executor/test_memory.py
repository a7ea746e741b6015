"""Memory planning: nothing that lives at the same time shares bytes, and sharing is worth it."""

from hypothesis import given
from hypothesis import strategies as st

from mxcore.executor.memory import Interval, layout

intervals = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 30), st.integers(0, 10)), max_size=40)


def overlap(a, b):
    return a.first <= b.last and b.first <= a.last


@given(intervals, st.booleans())
def test_no_two_live_intervals_meet(rows, share):
    made = [Interval(size, first, first + length) for size, first, length in rows]
    total = layout(made, share)
    for i, a in enumerate(made):
        assert a.offset >= 0 and a.offset % 16 == 0 and a.offset + a.size <= total
        for b in made[:i]:
            if overlap(a, b) or not share:
                assert a.offset + a.size <= b.offset or b.offset + b.size <= a.offset or not a.size or not b.size


@given(st.integers(2, 50))
def test_a_chain_needs_two_places(n):
    assert layout([Interval(160, t, t + 1) for t in range(n)]) == 320


def test_a_gap_is_filled():
    big, left, right = Interval(640, 0, 1), Interval(320, 2, 3), Interval(320, 2, 3)
    assert layout([left, right, big]) == 640 and {left.offset, right.offset} == {0, 320}
