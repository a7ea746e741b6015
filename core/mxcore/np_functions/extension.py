"""The functions of ``mx.npx``: layers and what else NumPy does not have.

Most are operators of ``mx.nd`` under other names: a table. Each is made when it is first asked for, with the operator's
own signature and documentation.
"""

from __future__ import annotations

import inspect
from typing import Any

from .._core import tables
from .._core.errors import error
from .._op_functions import LAST, docstring, signature

#: Function -> operator.
_OPERATORS = {
    "activation": "Activation",
    "arange_like": "_contrib_arange_like",
    "batch_dot": "batch_dot",
    "batch_flatten": "Flatten",
    "batch_norm": "BatchNorm",
    "cast": "Cast",
    "convolution": "Convolution",
    "deconvolution": "Deconvolution",
    "dropout": "Dropout",
    "embedding": "Embedding",
    "erf": "erf",
    "erfinv": "erfinv",
    "fully_connected": "FullyConnected",
    "gamma": "gamma",
    "gammaln": "gammaln",
    "gather_nd": "gather_nd",
    "layer_norm": "LayerNorm",
    "leaky_relu": "LeakyReLU",
    "log_softmax": "log_softmax",
    "multibox_detection": "_contrib_MultiBoxDetection",
    "multibox_prior": "_contrib_MultiBoxPrior",
    "multibox_target": "_contrib_MultiBoxTarget",
    "one_hot": "one_hot",
    "pick": "pick",
    "pooling": "Pooling",
    "relu": "_npx_relu",
    "reshape_like": "reshape_like",
    "rnn": "RNN",
    "roi_pooling": "ROIPooling",
    "sequence_mask": "SequenceMask",
    "shape_array": "shape_array",
    "sigmoid": "_npx_sigmoid",
    "slice": "slice",
    "smooth_l1": "smooth_l1",
    "softmax": "softmax",
    "topk": "topk",
}
__all__ = ["constraint_check", "nonzero", *_OPERATORS]  # noqa: PLE0604


def _function(name: str, op_name: str) -> Any:
    def fn(F: Any, *args: Any, **kwargs: Any) -> Any:
        return F.run(op_name, args, kwargs)

    fn.__name__ = fn.__qualname__ = name
    fn.__module__ = __name__
    op = tables.ops.find(op_name)
    if op is not None:
        fn.__doc__ = docstring(op)
        own = signature(op, LAST)
        face = inspect.Parameter("F", inspect.Parameter.POSITIONAL_ONLY)
        fn.__signature__ = own.replace(parameters=[face, *own.parameters.values()])  # type: ignore[attr-defined]
    return fn


def __getattr__(name: str) -> Any:
    if name not in _OPERATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _function(name, _OPERATORS[name])
    return found


def nonzero(F: Any, a: Any) -> Any:
    """The indices of the elements that are not zero, a row for each.

    Parameters
    ----------
    a : ndarray
        Of ``n`` dimensions.

    Returns
    -------
    ndarray of int64
        Shape (number of such elements, n), in the order of the elements. It is known only by running.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.nonzero(np.array([[1, 0], [0, 3]]))
    array([[0, 0],
           [1, 1]], dtype=int64)
    """
    return F.call("_npx_nonzero", a)


def constraint_check(F: Any, x: Any, msg: str) -> Any:
    """Whether all elements are true; if not, an error with a message once the result is waited for.

    Parameters
    ----------
    x : ndarray of bool
    msg : str
        What the error says.

    Returns
    -------
    ndarray of bool
        True, of shape ().

    Raises
    ------
    MXNetError
        (also ValueError) with `msg`, if an element is false.

    Examples
    --------
    >>> from mxcore import np, npx
    >>> npx.constraint_check(np.array([1, 2]) > 0, "the scale must be positive")
    array(True)
    """
    if not isinstance(msg, str):
        raise error(TypeError, f"npx.constraint_check: msg must be a str, got {type(msg).__name__}")
    return F.call("_npx_constraint_check", x, msg=msg)
