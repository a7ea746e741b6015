"""Samples of the operators in :mod:`mxcore.ops.random_pdf`."""

from __future__ import annotations

from ...testing.sample import Ints, Sample, Values

__all__ = ["SAMPLES"]

_POSITIVE, _COUNTS = Values((2, 3), 0.5, 2.0), Ints((2, 3), 0, 6)


#: Shapes of the samples in the samples, of the parameters.
_SHAPES = (((2, 3), (2,)), ((2, 3, 2), (2,)), ((2, 3), (2, 3)), ((1, 5), (1,)), ((2, 1, 2), (2, 1)))


def _spread(inputs):
    """Uses of a density: both forms, over shapes and dtypes."""
    first, *others = [v if isinstance(v, Values) else Values(v) for v in inputs]

    def given(sample, parameters):
        return [type(v)(shape, v.low, v.high) for v, shape in ((first, sample), *((v, parameters) for v in others))]

    for i, shapes in enumerate(_SHAPES):
        for is_log in (False, True) if i == 0 else (bool(i % 2),):
            yield Sample(*given(*shapes), params={"is_log": str(is_log) if i > 2 else is_log})
    yield Sample(*given((3, 4), (3,)), grad=False, dtypes="float16")
    yield Sample(*given((0, 3), (0,)), grad=False)


SAMPLES = {
    "_trailing_like": [Sample((2,), (2, 3), mxnet="internal"), Sample((2, 3), (2, 3), mxnet="internal")],
    "_trailing_sum": [Sample((2, 3), (2,), mxnet="internal"), Sample((2, 3), (2, 3), mxnet="internal")],
    "_middle_like": [Sample((2, 4), (2, 3, 4), mxnet="internal"), Sample((4,), (3, 4), mxnet="internal")],
    "_middle_sum": [Sample((2, 3, 4), (2, 4), mxnet="internal"), Sample((3, 4), (4,), mxnet="internal")],
    "_random_pdf_dirichlet": [
        *[
            Sample(
                Values((*first, *more, n), 0.1, 0.5), Values((*first, n), 0.5, 3), params={"is_log": is_log}, tol=4
            )  # MXNet's digamma is coarse
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
