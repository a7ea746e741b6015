"""Samples of the operators of :mod:`mxcore.ops.random`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...testing.sample import Ints, Sample, Values
from .distributions import LAWS
from .numpy_samples import NUMPY_SAMPLES

__all__ = ["SAMPLES"]


_HAWKES_GRADS: dict[str, Any] = dict(grad=(True, True, True, True, True, False, False, True))


def _hawkes(n: int, length: int, marks: int, lengths: list[int], **kw: Any) -> Sample:
    return Sample(
        Values((n, marks), 0.5, 3.0),
        Values((marks,), 0.1, 0.6),
        Values((marks,), 0.5, 2.0),
        Values((n, marks), 0.0, 1.5),
        Values((n, length), 0.1, 2.0),
        Ints((n, length), 0, marks, "int32"),
        lengths,
        Values((n,), 2.0 * length, 2.5 * length),
        **_HAWKES_GRADS,
        **kw,
    )


_F32, _F64, _I32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")
_FLOATS = "float16 float32 float64"


def _plausible(x: Any, mean: Any, var: Any, what: str = "") -> None:
    """Fail unless mean and variance of the values lie within six standard errors."""
    x = np.asarray(x, np.float64).ravel()
    if not x.size:
        return
    assert np.isfinite(x).all(), f"{what}: not finite"
    spread = np.sqrt(max(((x - mean) ** 4).mean() - var**2, var**2) / x.size)
    assert abs(x.mean() - mean) <= 6 * np.sqrt(var / x.size) + 1e-3 * abs(mean), (
        f"{what}: mean {x.mean()}, expected {mean}"
    )
    assert abs(((x - mean) ** 2).mean() - var) <= 6 * spread + 2e-3 * var, f"{what}: variance {x.var()}, expected {var}"


def _moments(law: Any, values: Any) -> Any:
    """A sample's check: the outputs have the moments of the law with these parameters."""
    mean, var = law.moments(*map(float, values))
    return lambda inputs, outputs: _plausible(outputs[0], mean, var, law.doc)


def _moments_each(law: Any) -> Any:
    """A sample's check: for each element of the parameter arrays, its row of draws has the right moments."""

    def check(inputs: Any, outputs: Any) -> None:
        rows = np.asarray(outputs[0]).reshape(inputs[0].size, -1)
        for i, row in enumerate(rows):
            mean, var = law.moments(*[float(a.ravel()[i]) for a in inputs])
            _plausible(row, mean, var, law.doc)

    return check


def _whole(low: Any, high: Any, shape: Any, **more: Any) -> Any:
    """A sample of `randint`, with its check."""

    def check(inputs: Any, outputs: Any) -> None:
        x = np.asarray(outputs[0])
        assert x.size == 0 or (x.min() >= low and x.max() < high)
        if x.size > 100:
            _plausible(x, (low + high - 1) / 2, ((high - low) ** 2 - 1) / 12)

    return Sample(params={"low": low, "high": high, "shape": shape, **more}, grad=False, check=check)


def _frequencies(inputs: Any, outputs: Any) -> None:
    data = inputs[0].reshape(-1, inputs[0].shape[-1])
    rows = np.asarray(outputs[0]).reshape(data.shape[0], -1).astype(int)
    for q, row in zip(data, rows):
        q = q / q.sum()
        for i, prob in enumerate(q):
            near = 6 * np.sqrt(prob * (1 - prob) / row.size)
            assert abs((row == i).mean() - prob) <= near, (
                f"index {i} came {(row == i).mean()} of the time, expected {prob}"
            )
        if len(outputs) > 1:
            logs = np.asarray(outputs[1]).reshape(data.shape[0], -1)[0]
            break
    if len(outputs) > 1:
        np.testing.assert_allclose(logs, np.log(data[0])[rows[0]], 1e-3)


_CHANCES = [[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]]


def _same_rows(inputs: Any, outputs: Any) -> None:
    before, after = (np.asarray(a).reshape(a.shape[0], -1) for a in (inputs[0], outputs[0]))
    assert (np.sort(before, 0) == np.sort(after, 0)).all()
    assert before.shape[0] < 10 or (before != after).any(), "nothing moved"


def _distinct(inputs: Any, outputs: Any) -> None:
    drawn, tries = (np.asarray(a) for a in outputs)
    for row, n in zip(drawn, tries):
        assert len(set(row)) == len(row) <= n and row.min(initial=0) >= 0 and row.max(initial=0) < 50


#: What the parameters of the distributions are in samples: (one value, another) for each.
_PARAMETERS = {
    "uniform": [(-1.0, 0.0), (1.0, 3.0)],
    "normal": [(-1.0, 1.0), (0.5, 2.0)],
    "exponential": [(0.5, 2.0)],
    "gamma": [(0.5, 3.0), (0.5, 2.0)],
    "poisson": [(0.5, 30.0)],
    "negative_binomial": [(1, 6), (0.3, 0.8)],
    "generalized_negative_binomial": [(1.0, 4.0), (0.2, 1.0)],
}


def _choices(law: Any, values: Any) -> Any:
    """The second value of each parameter, the first, and the default."""
    return [v[1] for v in values], [v[0] for v in values], [v[2] for v in law.parameters]


def _by_numbers(law: Any, values: Any) -> Any:
    names = [n for n, *_ in law.parameters]
    some, others, usual = _choices(law, values)

    def sample(values: Any, shape: Any, **more: Any) -> Any:
        given = {} if values is usual else dict(zip(names, values))
        return Sample(params={**given, "shape": shape, **more}, grad=False, check=_moments(law, values))

    return [
        sample(some, (40, 50)),
        sample(some, (7,), dtype="float64"),
        sample(others, (30, 1, 41), dtype="float64"),
        sample(some, (50, 30), dtype="float16"),
        sample(usual, 1501),
        sample([*map(str, others)], "(21, 70)", dtype="float32"),
        Sample(
            params={**dict(zip(names, some)), "shape": (2, 0)},
            grad=False,
            check=_moments(law, some),
            mxnet="0 means unknown",
        ),
    ]


def _by_shapes(law: Any, values: Any) -> Any:
    names = [n for n, *_ in law.parameters]
    some, others, usual = _choices(law, values)
    return [
        Sample((30, 40), params=dict(zip(names, some)), grad=False, check=_moments(law, some), dtypes=_FLOATS),
        Sample((9, 31, 3), params=dict(zip(names, map(str, others))), grad=False, check=_moments(law, others)),
        Sample((1200,), grad=False, check=_moments(law, usual)),
        Sample((1,), grad=False, check=lambda i, o: None),
        Sample((0, 3), grad=False, check=lambda i, o: None),
    ]


def _by_arrays(law: Any, values: Any) -> Any:
    check = _moments_each(law)

    def arrays(shape: Any) -> Any:
        return [
            (Ints if isinstance(parameter[2], int) else Values)(shape, *v)
            for parameter, v in zip(law.parameters, values)
        ]

    return [
        Sample(*arrays((3,)), params={"shape": (40, 50)}, grad=False, check=check),
        Sample(*arrays((2, 2)), grad=False, check=lambda i, o: None),
        Sample(*arrays((2, 1, 2)), params={"shape": 700, "dtype": "float64"}, grad=False, check=check),
        Sample(*arrays((1,)), params={"shape": "(30, 1, 30)", "dtype": "float16"}, grad=False, check=check),
        Sample(*arrays((3,)), params={"shape": (600,)}, grad=False, check=check, dtypes="float16"),
        Sample(*arrays((0, 2)), params={"shape": (3,)}, grad=False, check=lambda i, o: None),
    ]


_POSITIVE, _COUNTS = Values((2, 3), 0.5, 2.0), Ints((2, 3), 0, 6)
#: Shapes of the samples in the samples, of the parameters.
_SHAPES = (((2, 3), (2,)), ((2, 3, 2), (2,)), ((2, 3), (2, 3)), ((1, 5), (1,)), ((2, 1, 2), (2, 1)))


def _spread(inputs: Any) -> Iterator[Any]:
    """Uses of a density: both forms, over shapes and dtypes."""
    first, *others = [v if isinstance(v, Values) else Values(v) for v in inputs]

    def given(sample: Any, parameters: Any) -> Any:
        return [type(v)(shape, v.low, v.high) for v, shape in ((first, sample), *((v, parameters) for v in others))]

    for i, shapes in enumerate(_SHAPES):
        for is_log in (False, True) if i == 0 else (bool(i % 2),):
            yield Sample(*given(*shapes), params={"is_log": str(is_log) if i > 2 else is_log})
    yield Sample(*given((3, 4), (3,)), grad=False, dtypes="float16")
    yield Sample(*given((0, 3), (0,)), grad=False)


SAMPLES = {
    **NUMPY_SAMPLES,
    "_contrib_hawkesll": [
        _hawkes(3, 5, 2, [5, 2, 0]),
        _hawkes(1, 4, 3, [4]),
        _hawkes(4, 1, 1, [1, 1, 0, 1]),
        _hawkes(2, 7, 3, [7, 4]),
    ],
    "_contrib_backward_hawkesll": [
        Sample((2,), (2, 2), *_hawkes(2, 3, 2, [3, 2]).inputs, grad=False, mxnet="internal")
    ],
    "_random_randint": [
        _whole(-3, 17, (30, 40)),
        _whole(-3, 17, (7,), dtype="int64"),
        _whole(0, 2, 900, dtype="int32"),
        _whole(4, 5, (3, 1, 2)),
        _whole(-(2**31), 2**31 - 1, (40, 30)),
        _whole(-(2**40), 2**41, (40, 30), dtype="int64"),
        Sample(params={"low": "-3", "high": "17", "shape": "(2, 3)"}, grad=False, check=lambda i, o: None),
    ],
    "_sample_multinomial": [
        Sample(
            [[0.1, 0.2, 0.7], [0.25, 0.5, 0.25]],
            params={"shape": (20, 30), "get_prob": True},
            grad=False,
            check=_frequencies,
        ),
        Sample([0.3, 0.7], params={"dtype": "float32"}, grad=False, check=lambda i, o: None),
        Sample(_CHANCES, params={"shape": 600}, grad=False, check=_frequencies),
        Sample([_CHANCES, _CHANCES], params={"shape": "(20, 20)", "dtype": "uint8"}, grad=False, check=_frequencies),
        Sample([[1.0]], params={"shape": (3,), "dtype": "float64", "get_prob": "True"}, grad=False, check=_frequencies),
        Sample(
            [0.25, 0.25, 0.5], params={"shape": 900, "dtype": "float16"}, grad=False, check=_frequencies, dtypes=_FLOATS
        ),
        Sample((0, 3), params={"shape": 2}, grad=False, check=lambda i, o: None),
    ],
    "_backward_sample_multinomial": [
        Sample((2, 4), Values((2, 3), 0.2, 0.9), Ints((2, 4), 0, 3, dtype="int32"), grad=False, mxnet="internal"),
        Sample((5,), Values((4,), 0.2, 0.9), Ints((5,), 0, 4, dtype="int32"), grad=False, mxnet="internal"),
    ],
    "_shuffle": [
        Sample((20, 3), grad=False, check=_same_rows, dtypes=_FLOATS),
        Sample((1,), grad=False, check=_same_rows),
        Sample(Ints((31,), 0, 9), grad=False, check=_same_rows, dtypes="int8 uint8 int32 int64"),
        Sample((12, 1, 2, 3), grad=False, check=_same_rows),
        Sample((0, 3), grad=False, check=lambda i, o: None),
    ],
    "_sample_unique_zipfian": [
        Sample(params={"range_max": 50, "shape": (3, 8)}, grad=False, check=_distinct),
        Sample(params={"range_max": "8", "shape": "(2, 8)"}, grad=False, check=_distinct),
        Sample(params={"range_max": 50, "shape": (1, 1)}, grad=False, check=_distinct),
    ],
    **{
        form.format(name): uses(LAWS[name], values)
        for name, values in _PARAMETERS.items()
        for form, uses in (("_random_{}", _by_numbers), ("_random_{}_like", _by_shapes), ("_sample_{}", _by_arrays))
    },
    "_trailing_like": [Sample((2,), (2, 3), mxnet="internal"), Sample((2, 3), (2, 3), mxnet="internal")],
    "_trailing_sum": [Sample((2, 3), (2,), mxnet="internal"), Sample((2, 3), (2, 3), mxnet="internal")],
    "_middle_like": [Sample((2, 4), (2, 3, 4), mxnet="internal"), Sample((4,), (3, 4), mxnet="internal")],
    "_middle_sum": [Sample((2, 3, 4), (2, 4), mxnet="internal"), Sample((3, 4), (4,), mxnet="internal")],
    "_random_pdf_dirichlet": [
        *[
            # MXNet's digamma is coarse.
            Sample(Values((*first, *more, n), 0.1, 0.5), Values((*first, n), 0.5, 3), params={"is_log": is_log}, tol=4)
            for first, more, n in (((2,), (3,), 4), ((2,), (), 3), ((2, 1), (2,), 2), ((1,), (2, 2), 3))
            for is_log in (False, True)
        ],
        Sample(
            Values((2, 3), 0.1, 0.5), Values((2, 3), 0.5, 3), params={"is_log": "True"}, grad=False, dtypes="float16"
        ),
        Sample((0, 3), Values((0, 3), 0.5, 3)),
    ],
    "_random_pdf_uniform": [*_spread([Values((2, 3), 0, 1), Values((2,), -1, 0), Values((2,), 1, 2)])],
    "_random_pdf_normal": [*_spread([(2, 3), (2,), Values((2,), 0.5, 2)])],
    "_random_pdf_gamma": [*_spread([_POSITIVE, Values((2,), 0.5, 3), Values((2,), 0.5, 2)])],
    "_random_pdf_exponential": [*_spread([_POSITIVE, Values((2,), 0.5, 2)])],
    "_random_pdf_poisson": [*_spread([_COUNTS, Values((2,), 0.5, 4)])],
    "_random_pdf_negative_binomial": [*_spread([_COUNTS, Values((2,), 1, 5), Values((2,), 0.2, 0.8)])],
    "_random_pdf_generalized_negative_binomial": [*_spread([_COUNTS, Values((2,), 1, 4), Values((2,), 0.2, 1)])],
}
