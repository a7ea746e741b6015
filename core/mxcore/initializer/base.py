"""The base of initializers: which rule a parameter's name calls for."""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.errors import in_a_line
from ..base import MXNetError, error, plain
from ..ndarray import NDArray
from ..registry import get_alias_func, get_create_func, get_register_func

#: Errors that are told with the parameter where an initializer raises them; they stay of their kind.
_KINDS = (
    *(TypeError, ValueError, KeyError, IndexError, AttributeError, NotImplementedError, MemoryError),
    *(RuntimeError, AssertionError, ZeroDivisionError, OSError),
)

#: Ending of a parameter's name -> method that fills it. The first that fits counts.
SUFFIXES = (
    ("weight", "_init_weight"),
    ("bias", "_init_bias"),
    ("gamma", "_init_gamma"),
    ("beta", "_init_beta"),
    ("min", "_init_zero"),
    ("max", "_init_one"),
    ("weight_quantize", "_init_quantized_weight"),
    ("bias_quantize", "_init_quantized_bias"),
)

#: (beginning, ending) -> method, for names given as plain strings.
LEGACY = (
    ("upsampling", "", "_init_bilinear"),
    ("stn_loc", "weight", "_init_zero"),
    ("stn_loc", "bias", "_init_loc_bias"),
    ("", "bias", "_init_bias"),
    ("", "gamma", "_init_gamma"),
    ("", "beta", "_init_beta"),
    ("", "weight", "_init_weight"),
    ("", "moving_mean", "_init_zero"),
    ("", "moving_var", "_init_one"),
    ("", "moving_inv_var", "_init_zero"),
    ("", "moving_avg", "_init_zero"),
    ("", "min", "_init_zero"),
    ("", "max", "_init_one"),
)


class InitDesc(str):
    """The name of a parameter, with what is known about its initialization.

    Parameters
    ----------
    name : str
        Name of the parameter.
    attrs : dict of str to str, optional
        Attributes of its variable; ``__init__`` names an initializer that takes precedence.
    global_init : Initializer, optional
        Initializer of the whole network, for initializers that delegate.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.InitDesc``.

    Examples
    --------
    >>> InitDesc("fc_weight", {"__init__": '["one", {}]'})
    'fc_weight'
    """

    attrs: dict[str, str]
    global_init: Initializer | None

    def __new__(
        cls, name: str, attrs: dict[str, str] | None = None, global_init: Initializer | None = None
    ) -> InitDesc:
        desc = super().__new__(cls, name)
        desc.attrs = attrs or {}
        desc.global_init = global_init
        return desc


def fill(initializer: Callable[[Any, Any], Any], desc: str, arr: NDArray) -> None:
    """Let an initializer fill the array of a parameter; an error says which of both they are."""
    try:
        initializer(desc, arr)
    except Exception as e:
        kind = type(e)
        if not isinstance(e, MXNetError) and kind not in _KINDS:
            raise  # somebody may wait for just this
        own = getattr(desc, "attrs", {}).get("__init__") or initializer
        who = repr(own) if isinstance(own, str) else f"{type(own).__name__} of {type(own).__module__}"
        raise error(kind, f"parameter '{desc}' {tuple(arr.shape)}: initializer {who} failed: {in_a_line(e)}") from e


class Initializer:
    """Fills arrays by the names of their parameters; subclasses define ``_init_weight(name, arr)``.

    Names that end in ``weight`` go to `_init_weight`, in ``bias`` and ``beta`` to zero, in ``gamma`` to
    one. Subclasses may override the method of each ending.

    Parameters
    ----------
    **kwargs
        The subclass's own arguments, for `dumps`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.init.Initializer``.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Seven(mx.init.Initializer):
    ...     def _init_weight(self, name, arr):
    ...         arr[:] = 7
    >>> a = mx.nd.zeros(2)
    >>> Seven()(mx.init.InitDesc("fc_weight"), a)
    >>> a.asnumpy()
    array([7., 7.], dtype=float32)
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = plain(kwargs)
        self._verbose = False
        self._print_func: Callable[[NDArray], Any] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None  # type: ignore[assignment]  # equal ones are not the same

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], Any] | None = None) -> Initializer:
        """Log each initialization.

        Parameters
        ----------
        verbose : bool
            Whether to log.
        print_func : callable, optional
            What to show of an array; the root mean square by default.

        Returns
        -------
        Initializer
            This one.
        """
        self._verbose = verbose
        self._print_func = print_func or _root_mean_square
        return self

    def dumps(self) -> str:
        """Return the initializer as JSON that `mx.init.create` takes.

        Returns
        -------
        str
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill an array.

        Parameters
        ----------
        desc : InitDesc
            Name of the parameter; its attribute ``__init__``, if any, overrules this initializer. A plain
            string is deprecated.
        arr : NDArray
            The array to fill.

        Raises
        ------
        MXNetError
            (also ValueError) if the name has an ending that no rule is for.
        """
        if not isinstance(desc, str):
            raise error(TypeError, f"a parameter's name must be an InitDesc, not {desc!r}")
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__", "")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        for suffix, method in SUFFIXES:
            if desc.endswith(suffix):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, suffix, arr)
                return
        self._init_default(desc, arr)

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        warnings.warn(
            f"init({name!r}, array) with a plain string is deprecated; use init(mx.init.InitDesc({name!r}), array)",
            DeprecationWarning,
            stacklevel=3,
        )
        for prefix, suffix, method in LEGACY:
            if name.startswith(prefix) and name.endswith(suffix):
                getattr(self, method)(name, arr)
                return
        self._init_default(name, arr)

    def _verbose_print(self, desc: str, init: str, arr: NDArray) -> None:
        if self._verbose and self._print_func:
            logging.info("Initialized %s as %s: %s", desc, init, self._print_func(arr))

    def _init_weight(self, name: str, arr: NDArray) -> None:
        raise error(NotImplementedError, f"{type(self).__name__} does not define _init_weight(name, arr)")

    def _init_default(self, name: str, _: Any) -> None:
        raise error(
            ValueError,
            f"no rule says how to initialize {name!r}: names end in "
            f"{', '.join(repr(s) for s, _ in SUFFIXES[:4])}; for any other, give the "
            "variable an initializer: mx.sym.Variable(name, init=mx.init....)",
        )

    def _init_zero(self, _: Any, arr: NDArray) -> None:
        arr[:] = 0

    def _init_one(self, _: Any, arr: NDArray) -> None:
        arr[:] = 1

    _init_bias = _init_beta = _init_quantized_bias = _init_zero
    _init_gamma = _init_one

    def _init_quantized_weight(self, _: Any, arr: NDArray) -> None:
        from .. import random

        arr[:] = random.randint(-127, 127, shape=arr.shape, dtype="int32").asnumpy().astype("int8")

    def _init_bilinear(self, _: Any, arr: NDArray) -> None:
        arr[:] = bilinear_weight(arr.shape)

    def _init_loc_bias(self, _: Any, arr: NDArray) -> None:
        if arr.shape != (6,):
            raise error(ValueError, f"the bias of an affine transform has shape (6,), not {arr.shape}")
        arr[:] = np.array([1, 0, 0, 0, 1, 0], "float32")


register = get_register_func(Initializer, "initializer")
alias = get_alias_func(Initializer, "initializer")
create = get_create_func(Initializer, "initializer")


def bilinear_weight(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the weight (filters, channels, rows, columns) with which a deconvolution interpolates."""
    rows, columns = shape[2:]
    f = math.ceil(columns / 2)
    centre = (2 * f - 1 - f % 2) / (2.0 * f)
    y, x = (1 - np.abs(np.arange(n) / f - centre) for n in (rows, columns))
    return np.broadcast_to(np.outer(y, x), shape).astype("float32")


def _root_mean_square(arr: NDArray) -> str:
    values = arr.asnumpy()
    return str(np.linalg.norm(values) / math.sqrt(values.size))
