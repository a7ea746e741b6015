"""`Trainer`: applies an optimizer to parameters, over any number of contexts and machines."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import optimizer as opt
from .._interrupts import let_through
from .._io_files import write_atomic
from .._locks import ObjectLock, locked
from .._reexports import reexports
from ..base import MXNetError, error
from .parameter import Parameter, ParameterDict
from .parameter.parameter import changes

if TYPE_CHECKING:
    from ..context import Context
    from ..kvstore import KVStoreBase
    from ..ndarray import NDArray
    from ..optimizer import Optimizer

__all__ = ["KVStore", "Parameter", "ParameterDict", "Trainer"]  # noqa: F822 (found by __getattr__)

#: Above this number of elements a 'local' store does not update by itself: one CPU thread would do all the
#: work.
_LARGE = 16 << 20

#: Indices, gradients and weights.
_Lists = tuple[list[int], list["NDArray"], list["NDArray"]]


class Trainer:
    """Applies an optimizer to a set of parameters.

    Call `step` after every ``backward``, inside or outside of ``autograd.record``.

    Parameters
    ----------
    params : ParameterDict or dict or list of Parameter
        Dicts are taken in the order of their sorted names.
    optimizer : str or Optimizer
    optimizer_params : dict, optional
        Arguments of the optimizer; only with its name.
    kvstore : str or KVStore or None, default 'device'
        Who adds up gradients of several contexts or machines: a type such as 'local', 'device' or
        'dist_sync'. With a single context nothing is needed, and none is made unless it is given as an
        object or distributed.
    compression_params : dict, optional
        Gradient compression, e.g. ``{'type': '2bit', 'threshold': 0.5}``.
    update_on_kvstore : bool, optional
        Whether the store updates the parameters, or the trainer does. By default the store, where there is one that
        can, but not for row_sparse gradients of dense parameters, unless the store is distributed; the environment
        variable ``MXNET_UPDATE_ON_KVSTORE=0`` changes the default.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.Trainer``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.1})
    >>> with mx.autograd.record():
    ...     loss = net(mx.nd.ones((4, 2))).sum()
    >>> loss.backward()
    >>> trainer.step(batch_size=4)
    """

    #: Which was given to the store last.
    _handed: Parameter | None = None

    def __init__(
        self,
        params: ParameterDict | dict[str, Parameter] | Sequence[Parameter],
        optimizer: str | Optimizer,
        optimizer_params: dict[str, Any] | None = None,
        kvstore: str | KVStoreBase | None = "device",
        compression_params: dict[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        self._object_lock = ObjectLock()
        self._params = _as_list(params)
        self._param2idx = {p.name: i for i, p in enumerate(self._params)}
        for p in self._params:
            p._set_trainer(self)
        self._contains_sparse_weight = any(p.stype != "default" for p in self._params)
        self._contains_sparse_grad = any(p.grad_stype != "default" for p in self._params)
        self._compression_params = compression_params
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, optimizer_params or {})
        self._scale = self._optimizer.rescale_grad
        #: Of mixed precision (`contrib.amp.init_trainer`): who tells of gradients that overflowed.
        self._amp_loss_scaler: Any = None
        self._kvstore_params: dict[str, Any] = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        #: After which change of parameters, which ones were looked up, and what was found.
        self._known: Any = None
        self._reset_kvstore()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_known": None}

    # -- set-up ----------------------------------------------------------------------------------------------

    def _check_contexts(self) -> list[Context]:
        contexts = None
        for p in self._params:
            ctx = p.list_ctx()
            if contexts is not None and contexts != ctx:
                raise error(
                    AssertionError,
                    f"All Parameters must be initialized on the same set of contexts, but Parameter {p.name} "
                    f"is initialized on {ctx} while previous Parameters are initialized on {contexts}.",
                )
            contexts = ctx
        return contexts or []

    def _init_optimizer(self, optimizer: str | Optimizer, optimizer_params: dict[str, Any]) -> None:
        by_index = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if optimizer_params:
                raise error(
                    AssertionError,
                    "optimizer_params must be None if optimizer is an instance of Optimizer instead of str",
                )
            self._optimizer = optimizer
            # Learning-rate and weight-decay factors are read from the parameters at every step.
            self._optimizer.param_dict = by_index
        else:
            self._optimizer = opt.create(optimizer, param_dict=by_index, **optimizer_params)
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]

    def _reset_kvstore(self) -> None:
        """Start over with the store: values were set behind its back."""
        if getattr(self, "_kvstore", None) is not None and "dist" in self._kvstore.type:
            raise error(RuntimeError, "Cannot reset distributed KVStore.")
        self._kv_initialized = False
        self._kvstore: Any = None
        self._distributed: bool | None = None
        self._update_on_kvstore: bool | None = None
        self._params_to_init = list(self._params)
        self._handed = None

    def _forget_stored(self, param: Parameter) -> None:
        """A parameter's value was set: a store that updates must take the new value over."""
        if self._kv_initialized and self._update_on_kvstore and all(p is not param for p in self._params_to_init):
            self._reset_kvstore()

    def _init_kvstore(self) -> None:
        """Make the store, if one is needed, and decide who updates."""
        config = self._kvstore_params
        kv, update = self._make_store(config["kvstore"])
        self._distributed = kv is not None and "dist" in kv.type
        wanted = config["update_on_kvstore"]
        if self._contains_sparse_weight:
            if kv is None:
                raise error(
                    TypeError,
                    f"Trainer: rows of row_sparse parameters live in a store, but kvstore is {config['kvstore']!r}; "
                    "name one, such as 'device', or give a KVStore object.",
                )
            update = self._must_update(wanted, "parameters with row_sparse weights")
        elif self._distributed and "async" in kv.type:
            update = self._must_update(wanted, "an asynchronous store")
        elif self._distributed and self._contains_sparse_grad:
            update = self._must_update(wanted, "row_sparse gradients on a distributed store")
        elif wanted is not None:
            update = wanted
        elif self._contains_sparse_grad:
            update = False
        if kv is not None:
            if update and not kv.is_capable("optimizer"):
                if wanted:
                    raise error(
                        ValueError,
                        f"Please set update_on_kvstore=False when training with {type(kv)}: it cannot update.",
                    )
                update = False
            if self._compression_params:
                kv.set_gradient_compression(self._compression_params)
            if update:
                kv.set_optimizer(self._optimizer)
        self._kvstore = kv
        self._update_on_kvstore = bool(update) if kv is not None else None
        self._kv_initialized = True

    def _update_by_itself(self, where: str) -> None:
        """Take the update from the store, where that is free to choose."""
        wanted, kv = self._kvstore_params["update_on_kvstore"], self._kvstore_params["kvstore"]
        kind = str(kv if isinstance(kv, str) else getattr(kv, "type", ""))
        reasons = {
            "it was made with update_on_kvstore=True": wanted,
            "it has parameters with row_sparse weights": self._contains_sparse_weight,
            "its store is asynchronous": "async" in kind,
            "its distributed store has begun to": self._kv_initialized
            and self._update_on_kvstore
            and self._distributed,
        }
        why = next((reason for reason, holds in reasons.items() if holds), None)
        if why:
            raise error(
                ValueError,
                f"{where}: the store of this trainer updates the parameters ({why}), "
                "and nobody could stop it when gradients overflow; make a trainer with update_on_kvstore=False",
            )
        self._kvstore_params["update_on_kvstore"] = False
        if self._update_on_kvstore:
            self._reset_kvstore()

    @staticmethod
    def _must_update(wanted: bool | None, why: str) -> bool:
        if wanted is False:
            raise error(ValueError, f"Cannot set update_on_kvstore=False on the Trainer with {why}.")
        return True

    def _make_store(self, kvstore: str | KVStoreBase | None) -> tuple[Any, bool]:
        """The store, or None where a single context needs none, and whether it updates by default."""
        update = os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") not in ("0", "false", "False", "")
        if kvstore is None or kvstore == "":
            return None, False
        if not isinstance(kvstore, str):
            return kvstore, update
        from ..kvstore.kvstore import of_one_process

        # Rows of a sparse weight live in the store, whatever the number of contexts.
        if len(self._contexts) <= 1 and of_one_process(kvstore) and not self._contains_sparse_weight:
            return None, False
        if kvstore == "local" and any(np.prod(p.shape or (0,)) > _LARGE for p in self._params):
            update = False
        from .. import kvstore as stores

        return stores.create(kvstore), update

    def _init_params(self) -> None:
        """Hand values to the store that it does not have yet; what is not initialised waits."""
        waiting, at = self._params_to_init, 0
        while at < len(waiting):
            if waiting[at]._deferred_init:
                at += 1
                continue
            if self._kvstore is not None:
                self._hand_over(waiting[at])
            del waiting[at]  # now: a deadline, or whatever fails, may come amid the next

    def _hand_over(self, param: Parameter) -> None:
        """Give a value to the store, which may have it from an attempt that was interrupted."""
        again, self._handed = self._handed is param, param
        i, values = self._param2idx[param.name], param._check_and_get("_data", list)
        try:
            if param.stype != "default":
                self._kvstore.init(i, values[0])
            else:
                self._kvstore.broadcast(i, values[0], values, priority=-i)
        except MXNetError as e:
            let_through(e)
            if not again or param.stype == "default" and not hasattr(self._kvstore, "pull"):
                raise
            if param.stype == "default":
                self._kvstore.pull(i, values, priority=-i)

    def _prepare(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    def _row_sparse_pull(self, parameter: Parameter, out: Any, row_id: NDArray, full_idx: bool = False) -> None:
        """Fetch rows of a sparse parameter from the store."""
        self._prepare()
        i = self._param2idx[parameter.name]
        if full_idx and "dist" not in self._kvstore.type:
            # All rows of a local store come with a plain pull.
            self._kvstore.pull(i, out=out, priority=-i, ignore_sparse=False)
        else:
            self._kvstore.row_sparse_pull(i, out=out, row_ids=row_id, priority=-i)

    # -- the optimizer ---------------------------------------------------------------------------------------

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer at work."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """Current learning rate."""
        return self._optimizer.learning_rate  # whatever was given as one, also an array of one number

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; refused while a scheduler decides it.

        Where servers update, all workers of a synchronous job must set it, for they wait for each other.

        Parameters
        ----------
        lr : float
        """
        if self._optimizer.lr_scheduler is not None:
            raise error(
                UserWarning,
                "LRScheduler of the optimizer has already been defined. Note that set_learning_rate can mutate the "
                "value of the learning rate of the optimizer only when the LRScheduler of the optimizer is undefined.",
            )
        if self._update_on_kvstore and hasattr(self._kvstore, "set_learning_rate"):  # servers have a copy of it
            self._kvstore.set_learning_rate(lr)
        self._optimizer.set_learning_rate(lr)

    # -- steps -----------------------------------------------------------------------------------------------

    @locked
    def step(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Add gradients up over all contexts and machines, and update the parameters.

        Parameters
        ----------
        batch_size : int
            Gradients are divided by it, so that the learning rate does not depend on it. Use 1 if the loss
            is a mean.
        ignore_stale_grad : bool, default False
            Skip parameters whose gradient was not computed since the last step, instead of raising.

        Raises
        ------
        MXNetError (UserWarning)
            If a gradient is stale.
        """
        self._set_rescale(batch_size)
        self._prepare()
        self._allreduce_grads()
        self._update(ignore_stale_grad)

    @locked
    def allreduce_grads(self) -> None:
        """Add gradients up over all contexts and machines without updating; call `update` next.

        Raises
        ------
        MXNetError (AssertionError)
            If the store updates.
        """
        self._prepare()
        self._refuse_on_store("allreduce_grads")
        self._allreduce_grads()

    @locked
    def update(self, batch_size: int, ignore_stale_grad: bool = False) -> None:
        """Update the parameters from gradients that `allreduce_grads` added up; arguments as for `step`."""
        self._prepare()
        self._refuse_on_store("update")
        self._set_rescale(batch_size)
        self._update(ignore_stale_grad)

    def _refuse_on_store(self, method: str) -> None:
        if self._update_on_kvstore:
            raise error(
                AssertionError,
                f"{method}() when parameters are updated on kvstore is not supported. Try setting "
                "`update_on_kvstore` to False when creating trainer.",
            )

    def _set_rescale(self, batch_size: int) -> None:
        if isinstance(batch_size, Real) and not batch_size or isinstance(batch_size, (str, type(None))):
            raise error(
                ValueError,
                f"batch_size, by which gradients are divided, must be a number other than 0; got {batch_size!r}",
            )
        scale = self._scale / batch_size
        if self._update_on_kvstore and self._distributed and self._optimizer.rescale_grad != scale:
            # Workers may differ, and the optimizer lives on the servers since the first step.
            warnings.warn(
                "Possible change in the `batch_size` from previous `step` detected. Optimizer gradient "
                "normalizing factor will not change w.r.t new batch_size when update_on_kvstore=True and "
                "when distributed kvstore is used.",
                UserWarning,
                stacklevel=3,
            )
        self._optimizer.rescale_grad = scale

    def _allreduce_grads(self) -> None:
        kv = self._kvstore
        if kv is None:
            return
        from ..kvstore.steps import Exchange

        exchange = Exchange(kv, self._contexts)
        for i, p in enumerate(self._params):
            if p.grad_req == "null":
                continue
            grads = p.list_grad()
            if p.grad_stype == "default" or not hasattr(kv, "push"):  # stores without servers add up whatever comes
                exchange.pushpull(i, grads, out=p.list_data() if self._update_on_kvstore else grads, priority=-i)
                continue
            exchange.end()
            kv.push(i, grads, priority=-i)
            if p.stype == "default":
                out = p.list_data() if self._update_on_kvstore else grads
                kv.pull(i, out, priority=-i, ignore_sparse=self._distributed)
        exchange.end()

    def _update(self, ignore_stale_grad: bool = False) -> None:
        if self._amp_loss_scaler is not None and self._amp_loss_scaler.has_overflow(self._params):
            return
        live, work = self._moving()
        if not ignore_stale_grad:
            # All are looked at before any is used up.
            self._refuse_stale(live)
        if self._update_on_kvstore:
            return
        for updater, (indices, gradients, weights) in zip(self._updaters, work):
            moved = []
            for i, array in enumerate(weights):
                if not ignore_stale_grad or array._fresh_grad:  # one that comes twice is used up by then
                    array._fresh_grad = False
                    moved.append(i)
            if len(moved) == len(weights):
                updater([*indices], [*gradients], [*weights])  # who updates may keep them
            elif moved:
                updater(*([some[i] for i in moved] for some in (indices, gradients, weights)))

    def _moving(self) -> tuple[list[tuple[Parameter, list[NDArray]]], list[_Lists]]:
        """The parameters with gradients and their arrays; for each context the indices, gradients and weights.

        They are looked up again after any parameter anywhere got other arrays.
        """
        now, params = changes.last, [*self._params]
        known = self._known
        if known is None or known[0] is not now or known[1] != params:
            numbered = [(i, p) for i, p in enumerate(params) if p.grad_req != "null"]
            live = [(p, p._check_and_get("_data", list)) for _, p in numbered]
            work: list[_Lists] = [([], [], []) for _ in self._updaters]
            for (i, p), (_, arrays) in zip(numbered, live):
                # A parameter may be on fewer contexts than others, or come twice.
                for (indices, gradients, weights), array, grad in zip(work, arrays, p.list_grad()):
                    indices.append(i)
                    gradients.append(grad)
                    weights.append(array)
            known = self._known = now, params, (live, work)
        found: tuple[list[tuple[Parameter, list[NDArray]]], list[_Lists]] = known[2]
        return found

    @staticmethod
    def _refuse_stale(live: Iterable[tuple[Parameter, list[NDArray]]]) -> None:
        for p, arrays in live:
            for array in arrays:
                if not array._fresh_grad:
                    raise error(
                        UserWarning,
                        f"Gradient of Parameter `{p.name}` on context {array.context} has not been updated "
                        "by backward since last `step`. This could mean a bug in your model that made it "
                        "only use a subset of the Parameters (Blocks) for this iteration. If you are "
                        "intentionally only using a subset, call step with ignore_stale_grad=True to "
                        "suppress this warning and skip updating of Parameters with stale gradient",
                    )

    # -- files -----------------------------------------------------------------------------------------------

    @locked
    def save_states(self, fname: str) -> None:
        """Write the optimizer and its states (momentum and the like) to a file.

        Parameters
        ----------
        fname : str
        """
        self._prepare()
        if self._update_on_kvstore:
            if self._params_to_init:
                raise error(
                    AssertionError,
                    "Cannot save trainer states when some parameters are not yet initialized in kvstore.",
                )
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
        else:
            write_atomic(fname, self._updaters[0].get_states(dump_optimizer=True))

    @locked
    def load_states(self, fname: str) -> None:
        """Read what `save_states` wrote; the parameters are not part of it.

        Parameters
        ----------
        fname : str
        """
        self._prepare()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            # A store of a plugin's may keep its optimizer to itself.
            self._optimizer = getattr(getattr(self._kvstore, "_updater", None), "optimizer", self._optimizer)
        else:
            first, *others = self._updaters
            first.load(fname, *others)
            for updater in others:
                updater.optimizer = first.optimizer
            self._optimizer = first.optimizer
            # Each replica goes on from its own count, and one that the file does not know from the most.
            self._optimizer._count_on(*(ctx.device_id for ctx in self._contexts), own=True)
        self._optimizer.param_dict = dict(enumerate(self._params))


def _as_list(params: ParameterDict | dict[str, Parameter] | Sequence[Parameter]) -> list[Parameter]:
    if isinstance(params, (dict, ParameterDict)):
        params = [params[name] for name in sorted(params.keys())]
    if not isinstance(params, (list, tuple)):
        raise error(ValueError, f"First argument must be a list or dict of Parameters, got {type(params)}.")
    for p in params:
        if not isinstance(p, Parameter):
            raise error(ValueError, f"First argument must be a list or dict of Parameters, got list of {type(p)}.")
    return list(params)


# Most training needs no store: it is not loaded for the sake of a name.
__getattr__ = reexports(__name__)
