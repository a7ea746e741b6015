"""A plugin for mxcore: the operator `toy_op`, with its gradient, on every device and in every graph."""

from mxcore.plugin import Float, Sample, hookimpl, op

API_VERSION = 1


@op(
    "toy_op",
    factor=Float(1.0),
    samples=[Sample((2, 3), params={"factor": 2.0})],
    grad=lambda F, p, dy, data: dy * data * (2 * p.factor),
)
def toy_op(k, p, data):
    """Return ``factor * data ** 2``: data of any shape, factor a number."""
    return data * data * p.factor


@hookimpl
def mxcore_ops():
    """Bring the operators of this module."""
    return [toy_op]
