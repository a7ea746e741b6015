"""Samples of the operators in :mod:`mxcore.ops.ctc`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...testing.sample import Sample, Values

__all__ = ["SAMPLES"]


def _without(shape: tuple[int, ...], *places: Any, value: float = -np.inf) -> Any:
    """Logits of which some are minus infinity, or another value."""
    x = np.random.RandomState(7).uniform(-2.0, 2.0, shape)
    for place in places:
        x[place] = value
    return x


_ALL = slice(None)


_SAMPLE = ([(5, 2, 4), [[1, 2, 0], [3, 3, 1]]], {})


SAMPLES = {
    "CTCLoss": [
        Sample((7, 2, 4), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
        Sample((6, 2, 4), [[1, 2, -1], [0, 0, 1]], params={"blank_label": "last"}, grad=(True, False)),
        Sample(
            (7, 2, 4),
            [[1, 2, 1], [3, 3, 1]],
            [5, 7],
            [2, 3],
            params={"use_data_lengths": True, "use_label_lengths": True},
            grad=(True, False, False, False),
        ),
        Sample((6, 2, 4), [[1, 2, 3], [3, 3, 1]], [4, 6], params={"use_data_lengths": True}, grad=(True, False, False)),
        Sample(
            (6, 2, 4),
            [[1, 2, 3], [0, 0, 1]],
            [2, 3],
            params={"use_label_lengths": True, "blank_label": "last"},
            grad=(True, False, False),
        ),
        Sample(
            (6, 3, 4),
            [[1, 2], [-1, -1], [2, -1]],
            [5, 6, 3],
            params={"use_data_lengths": "True", "blank_label": "last"},
            grad=(True, False, False),
        ),
        Sample(
            (5, 3, 4), [[0, 0], [1, 0], [2, 2]], grad=(True, False)
        ),  # no label, one, one that needs a blank between
        Sample((3, 1, 2), [[1, 1, 0]], grad=(True, False)),
        Sample((1, 2, 3), [[1], [2]], grad=(True, False)),
        Sample(
            (4, 1, 3),
            [[1, 2]],
            np.array([3], np.int32),
            np.array([1], np.int32),
            grad=(True, False, False, False),
            params={"use_data_lengths": True, "use_label_lengths": True},
        ),
        Sample(Values((5, 2, 4), -60.0, 60.0), [[1, 2, 0], [3, 3, 1]], grad=(True, False)),
        Sample((6, 2, 4), np.array([[1, 2, 0], [3, 3, 1]], np.int32), grad=(True, False)),
        # Logits of classes that cannot be: some of a path's, of the blank, a label's (one of two) at all times; numbers
        # beyond reason.
        *(
            Sample(_without(*q), [[2, 1], [1, 3]], grad=False, dtypes="float32")
            for q in (
                ((3, 2, 4), (0, 0, 2), (slice(1, 3), 1, 0)),
                ((4, 2, 4), (slice(1, 3), _ALL, 0)),
                ((4, 2, 4), (_ALL, _ALL, 2)),
            )
        ),
        Sample(
            _without((5, 2, 4), (1, 0, 3), (2, 0, 0), (2, 1, 3)),
            [[2, 1], [0, 1]],
            params={"blank_label": "last"},
            grad=False,
        ),
        Sample(_without((3, 1, 4), (_ALL, 0, 2), value=-1e31), [[2, 1]], grad=False, dtypes="float32"),
        *(
            Sample(
                *ins,
                params=q,
                grad=False,
                mxnet="forward only: MXNet leaves the gradient of labels that do not fit unset",
            )
            for ins, q in (
                (((3, 3, 4), [[1, 1, 0], [1, 2, 1], [2, 2, 2]]), {}),
                (((3, 2, 3), [[1, 2], [2, 1]], [1, 0]), {"use_data_lengths": True}),
            )
        ),
        Sample((5, 0, 4), (0, 3), grad=False),
    ],
    "_backward_ctc_loss": [Sample((2,), *_SAMPLE[0], params=_SAMPLE[1], grad=False, mxnet="internal")],
}
