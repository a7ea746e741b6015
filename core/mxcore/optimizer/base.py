"""The base of optimizers: learning rates, weight decays, counts of updates and master copies."""

from __future__ import annotations

import logging
import math
import reprlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import kinds as _shared
from .. import ndarray as nd
from .. import registry as _registry
from ..base import asserted, error, plain
from ..lr_scheduler import LRScheduler
from ..ndarray import NDArray
from ..ops.common.bodies import is_half

Class = TypeVar("Class", bound=type)

_KIND = "optimizer"


def _is_rate(rate: Any) -> bool:
    """Whether something is a number, or an array of one."""
    return hasattr(rate, "__float__") and getattr(rate, "size", 1) == 1


def checked_rate(rate: Any) -> Any:
    """A learning rate, refused if it is neither a number nor an array of one."""
    if (
        not _is_rate(rate) or isinstance(rate, float) and math.isnan(rate)
    ):  # to look into an array, one would have to wait
        raise error(TypeError, f"a learning rate is a number, not {reprlib.repr(rate)}")
    return rate


class _Registered(Mapping[str, Any]):
    """All optimizers by name."""

    def __getitem__(self, name: str) -> Any:
        return _shared.lookup(_KIND, name)

    def __iter__(self) -> Iterator[str]:
        return iter(_shared.names(_KIND))

    def __len__(self) -> int:
        return len(_shared.names(_KIND))


class Optimizer:
    """A rule that moves weights against their gradients; subclasses define `create_state` and `update`.

    Parameters
    ----------
    rescale_grad : float
        Factor on gradients before anything else, usually 1 / batch size.
    param_idx2name : dict of int to str, optional
        Names of the parameters by index. Those that do not end in ``_weight`` or ``_gamma`` get no weight
        decay.
    wd : float
        Weight decay: the factor of the L2 penalty.
    clip_gradient : float, optional
        Bound on the absolute value of each (rescaled) gradient element.
    learning_rate : float, optional
        The learning rate, 0.01 by default. It becomes the base rate of `lr_scheduler`, if both are given.
    lr_scheduler : LRScheduler, optional
        The learning rate as a function of the number of updates.
    sym : Symbol, optional
        The network, whose variables may say ``lr_mult`` and ``wd_mult``.
    begin_num_update : int
        Number of updates made before.
    multi_precision : bool
        Keep a float32 master copy of each weight of half precision, float16 or bfloat16.
    param_dict : dict of int to Parameter, optional
        Gluon's parameters, whose ``lr_mult`` and ``wd_mult`` take precedence.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.optimizer.Optimizer``.

    Examples
    --------
    >>> import mxcore as mx
    >>> @mx.optimizer.register
    ... class SignDescent(mx.optimizer.Optimizer):
    ...     def update(self, index, weight, grad, state):
    ...         self._update_count(index)
    ...         weight -= self._get_lr(index) * grad.sign()
    >>> mx.optimizer.create("signdescent", learning_rate=0.1).lr
    0.1
    """

    #: All optimizers by name.
    opt_registry = _Registered()
    #: Whether an update reads all of a weight or gradient, as for a norm: stores must not split it over servers.
    reads_whole = False

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: dict[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: dict[Any, Any] | None = None,
    ) -> None:
        if not isinstance(param_idx2name, (dict, type(None))):
            raise asserted(TypeError, f"param_idx2name must be a dictionary of names, not {param_idx2name!r}")
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if learning_rate is None:
            self.lr: Any = 0.01 if lr_scheduler is None else None
        else:
            self.lr = checked_rate(learning_rate)
        if lr_scheduler is not None and learning_rate is not None and lr_scheduler.base_lr != learning_rate:
            logging.warning(
                "learning_rate=%s takes the place of the scheduler's base_lr=%s", learning_rate, lr_scheduler.base_lr
            )
            lr_scheduler.base_lr = learning_rate
        self.wd = wd
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.begin_num_update = self.num_update = plain(begin_num_update)
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0  # how many weights one call of `update` takes; 0: one, without a list
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = param_dict or {}
        self.allow_np_array = False
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __getstate__(self) -> dict[str, Any]:
        # Parameters belong to the trainer, which sets them again.
        return {name: value for name, value in self.__dict__.items() if name != "param_dict"}

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state, param_dict={})

    # -- by name

    @staticmethod
    def register(klass: Class) -> Class:
        """Register a subclass under its name in lower case.

        Parameters
        ----------
        klass : type
            A subclass of `Optimizer`.

        Returns
        -------
        type
            The same, so that this works as a decorator.
        """
        registered: Class = _registry.get_register_func(Optimizer, _KIND)(klass)
        return registered

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Any:
        """Create an optimizer by name.

        Parameters
        ----------
        name : str
            A registered name, in any case.
        **kwargs
            Arguments of the optimizer.

        Returns
        -------
        Optimizer

        Raises
        ------
        MXNetError
            (also ValueError) if no optimizer has that name.
        """
        if isinstance(name, str) and not name.startswith(("[", "{")):
            try:
                found = _shared.making(_KIND, name.lower(), Optimizer)
            except KeyError as e:
                raise error(ValueError, str(e)) from None
            return found(**kwargs)
        return _registry.get_create_func(Optimizer, _KIND)(name, **kwargs)

    # -- what subclasses define

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """Make what the rule remembers about one weight.

        Parameters
        ----------
        index : int or str
            Which parameter.
        weight : NDArray
            Its value.

        Returns
        -------
        None, NDArray or tuple
        """

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Move a weight, in place.

        Parameters
        ----------
        index : int or str
            Which parameter; a list if `aggregate_num` is set, and so are the others.
        weight : NDArray
            Its value.
        grad : NDArray
            Its gradient. The memory is that of whoever has called, who will use it again: what is to be kept must be
            copied.
        state : None, NDArray or tuple
            What `create_state` made, changed in place.
        """
        raise error(NotImplementedError, f"optimizer {type(self).__name__} does not define update()")

    # -- master copies

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """Make the state of one weight, with a float32 master copy if that is wanted.

        Parameters
        ----------
        index : int or str
            Which parameter.
        weight : NDArray
            Its value.

        Returns
        -------
        None, NDArray or tuple
            ``(master, state)`` with a master copy, else what `create_state` returns.
        """
        if self._has_master(weight):
            master = weight.astype("float32")
            return master, self.create_state(index, master)
        self._warn_of_half(weight)
        return self.create_state(index, weight)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Move a weight, in place, by way of its float32 master copy if it has one.

        Parameters
        ----------
        index, weight, grad, state
            As for `update`; the state is that of `create_state_multi_precision`.
        """
        if not self._has_master(weight):
            self.update(index, weight, grad, state)
            return
        master, inner = state
        self.update(index, master, grad.astype("float32"), inner)
        nd.cast(master, dtype=weight.dtype, out=weight)

    def _has_master(self, weight: NDArray) -> bool:
        return self.multi_precision and is_half(np.dtype(weight.dtype))

    def _warn_of_half(self, weight: NDArray) -> None:
        if is_half(np.dtype(weight.dtype)) and not self.multi_precision:
            warnings.warn(
                f"{type(self).__name__} sums {np.dtype(weight.dtype).name} numbers: inaccurate, or slow to converge; "
                "multi_precision=True keeps a float32 copy",
                stacklevel=3,
            )

    # -- learning rates, decays, counts

    @property
    def learning_rate(self) -> float:
        """The learning rate now, before multipliers."""
        lr: float = self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)
        if self.lr_scheduler is not None and lr.__class__ is not float and not _is_rate(lr):
            raise error(
                TypeError,
                f"lr_scheduler {type(self.lr_scheduler).__name__} of {type(self.lr_scheduler).__module__} returned "
                f"{reprlib.repr(lr)} for update {self.num_update}; a number is needed",
            )
        return lr

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate.

        Parameters
        ----------
        lr : float
            The new learning rate.

        Raises
        ------
        UserWarning
            If a scheduler determines it, as in MXNet.
        MXNetError
            (also TypeError) if it is no number.
        """
        if self.lr_scheduler is not None:
            raise UserWarning("a scheduler determines the learning rate; set lr_scheduler.base_lr instead")
        self.lr = checked_rate(lr)

    def set_lr_scale(self, args_lrscale: Any) -> None:
        """Refuse: use `set_lr_mult`."""
        raise DeprecationWarning("use set_lr_mult instead")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Set factors on the learning rate of single parameters.

        Parameters
        ----------
        args_lr_mult : dict of str or int to float
            By name or index. They add to those of the symbol's variables.
        """
        self.lr_mult = {**self._symbol_mult("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Set factors on the weight decay of single parameters.

        Parameters
        ----------
        args_wd_mult : dict of str or int to float
            By name or index. They add to those of the symbol's variables; parameters that are neither
            weight nor gamma by name have 0.
        """
        bare = {n: 0.0 for n in self.idx2name.values() if not n.endswith(self._decaying)}
        self.wd_mult = {**bare, **self._symbol_mult("__wd_mult__"), **args_wd_mult}

    #: Endings of the names of parameters with weight decay.
    _decaying: tuple[str, ...] = ("_weight", "_gamma")

    def _symbol_mult(self, key: str) -> dict[str, float]:
        if not self.sym_info:
            return {}
        attrs, names = self.sym_info
        return {n: _number(n, key, attrs[n][key]) for n in names if key in attrs.get(n, ())}

    def _set_current_context(self, device_id: int) -> None:
        """Count updates for one device: each has its own replica of the parameters."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _count_on(self, *device_ids: int, own: bool = False) -> None:
        """Count updates on these devices: from the most that a weight has had on any, or on each from its own if told.

        A device that has no count of a weight begins with the most in any case.
        """
        most: dict[Any, int] = {}
        was = self._all_index_update_counts
        for counts in was.values():
            for index, count in counts.items():
                most[index] = max(count, most.get(index, count))
        self._all_index_update_counts = {i: {**most, **(was.get(i, {}) if own else {})} for i in device_ids}
        self._index_update_count = self._all_index_update_counts[device_ids[0]]

    def _update_count(self, index: Any) -> None:
        """Count one update of a parameter, or of each in a list."""
        counts = self._index_update_count
        for i in index if isinstance(index, (list, tuple)) else (index,):
            counts[i] = n = counts.get(i, self.begin_num_update) + 1
            if n > self.num_update:
                self.num_update = n

    def _are_even(self, indices: Sequence[Any]) -> bool:
        """Whether some parameters were updated equally often."""
        return len({self._index_update_count.get(i, self.begin_num_update) for i in indices}) <= 1

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        return self._scaled(self.learning_rate, indices, "lr_mult")

    def _get_lr(self, index: Any) -> float:
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        return self._scaled(self.wd, indices, "wd_mult")

    def _get_wd(self, index: Any) -> float:
        return self._get_wds([index])[0]

    def _scaled(self, value: float, indices: Sequence[Any], kind: str) -> list[float]:
        """Return `value` times the multiplier of each index: Gluon's, then by index, then by name."""
        table = getattr(self, kind)
        if not table and not self.param_dict:
            return [value * 1.0] * len(indices)
        out = []
        for index in indices:
            if index in self.param_dict:
                mult = getattr(self.param_dict[index], kind)
            elif index in table:
                mult = table[index]
            else:
                mult = table.get(self.idx2name[index], 1.0) if index in self.idx2name else 1.0
            out.append(value * mult)
        return out

    # -- for the rules

    def _begin(self, index: Any) -> tuple[float, float, int]:
        """Count an update; return its learning rate, its weight decay and its number."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._index_update_count[index]

    def _common(self) -> dict[str, Any]:
        """Arguments that every fused operator takes."""
        common = {"rescale_grad": self.rescale_grad}
        if self.clip_gradient:
            common["clip_gradient"] = self.clip_gradient
        return common

    def _prepared(self, grad: NDArray) -> NDArray:
        """Return a gradient rescaled and clipped, for rules without a fused operator."""
        return self._clipped(grad * self.rescale_grad)

    def _clipped(self, grad: NDArray) -> NDArray:
        if self.clip_gradient is None:
            return grad
        clipped: NDArray = nd.clip(grad, -self.clip_gradient, self.clip_gradient)
        return clipped


def _number(name: str, key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise error(ValueError, f"variable {name!r}: attribute {key} must be a number, got {text[:60]!r}") from None


def zeros_like(weight: NDArray, stype: str = "default") -> NDArray:
    """Return zeros with the shape, dtype and device of a weight, in storage `stype`."""
    return nd.zeros(weight.shape, weight.context, dtype=weight.dtype, stype=stype)
