"""`SequentialModule`: modules in a row, each fed with the outputs of the one before."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

from .._locks import locked
from ..base import error
from ..initializer import Uniform
from ..io import DataDesc
from ..ndarray import NDArray
from .base_module import BaseModule
from .names import check_params

__all__ = ["SequentialModule"]


class SequentialModule(BaseModule):
    """A chain of modules; gradients go back through it.

    Parameters
    ----------
    logger : Logger

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.SequentialModule``.

    Examples
    --------
    >>> import mxcore as mx
    >>> body = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="body")
    >>> head = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="head")
    >>> head = mx.sym.SoftmaxOutput(head, name="softmax")
    >>> mod = mx.mod.SequentialModule()
    >>> mod = mod.add(mx.mod.Module(body, label_names=[])).add(mx.mod.Module(head), take_labels=True, auto_wiring=True)
    >>> mod.bind([("data", (3, 5))], [("softmax_label", (3,))])
    >>> mod.init_params()
    >>> sorted(mod.get_params()[0])
    ['body_bias', 'body_weight', 'head_bias', 'head_weight']
    """

    #: Names of the options of `add`.
    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, bool]] = []
        self._label_shapes: Any = None

    @locked
    def add(self, module: BaseModule, **kwargs: bool) -> SequentialModule:
        """Put a module at the end.

        Parameters
        ----------
        module : BaseModule
        take_labels : bool
            The module takes the batch's labels, and metrics look at its outputs.
        auto_wiring : bool
            The module's data take the names of its own `data_names`, whatever the outputs before are called.

        Returns
        -------
        SequentialModule
            This one.
        """
        if not isinstance(module, BaseModule):
            raise error(TypeError, f"SequentialModule.add takes a module, got {type(module).__name__}")
        known = {self.META_TAKE_LABELS, self.META_AUTO_WIRING}
        for key in kwargs:
            if key not in known:
                raise error(AssertionError, f"SequentialModule.add: unknown option {key!r}; there are {sorted(known)}")
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _takes(self, i: int, what: str) -> bool:
        return bool(self._metas[i].get(what))

    # -- descriptions ------------------------------------------------------------------------------------------
    @property
    def data_names(self) -> list[str]:
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        self._require("data_shapes")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("label_shapes")
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("output_shapes")
        return self._modules[-1].output_shapes

    # -- parameters --------------------------------------------------------------------------------------------
    @locked
    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        self._require("get_params", params=True)
        args, auxs = {}, {}
        for module in self._modules:
            a, x = module.get_params()
            args.update(a)
            auxs.update(x)
        return args, auxs

    @locked
    def init_params(
        self,
        initializer: Any = Uniform(0.01),
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        if self.params_initialized and not force_init:
            return
        self._require("init_params")
        if initializer is None and not allow_missing:
            needed: list[dict[str, Any]] = [{}, {}]
            for module in self._modules:
                for into, part in zip(
                    needed, (getattr(module, "_arg_params", None), getattr(module, "_aux_params", None))
                ):
                    into.update(part or {})
            check_params(needed[0], arg_params, "arg_params", False, True)
            check_params(needed[1], aux_params, "aux_params", False, True)
        for module in self._modules:
            module.init_params(
                initializer=initializer,
                arg_params=arg_params,
                aux_params=aux_params,
                allow_missing=allow_missing,
                force_init=force_init,
                allow_extra=allow_extra,
            )
        self._refuse_duplicates()
        self.params_initialized = True

    def _refuse_duplicates(self) -> None:
        for which in (0, 1):
            seen: dict[str, int] = {}
            for i, module in enumerate(self._modules):
                for name in module.get_params()[which]:
                    if name in seen:
                        raise error(
                            AssertionError,
                            f"two modules of the chain have a parameter {name!r}: number {seen[name]} and number "
                            f"{i}; give layers names that differ, name=… or prefix=…",
                        )
                    seen[name] = i

    # -- binding -----------------------------------------------------------------------------------------------
    @locked
    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: BaseModule | None = None,
        grad_req: Any = "write",
    ) -> None:
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise error(AssertionError, "bind: inputs_need_grad=True needs for_training=True")
        if shared_module is not None:
            raise error(AssertionError, "bind: a SequentialModule does not share with another module; its parts can")
        if not self._modules:
            raise error(AssertionError, "bind: the SequentialModule is empty; call add() before")
        shapes, anyone = data_shapes, False
        for i, module in enumerate(self._modules):
            labels = self._takes(i, self.META_TAKE_LABELS)
            anyone |= labels
            if self._takes(i, self.META_AUTO_WIRING):
                names = module.data_names
                if len(names) != len(shapes):
                    raise error(
                        AssertionError,
                        f"bind: module number {i} takes {len(names)} data {names}, the one before gives "
                        f"{len(shapes)}: {[s[0] for s in shapes]}",
                    )
                shapes = [_renamed(s, name) for s, name in zip(shapes, names)]
            module.bind(
                data_shapes=shapes,
                label_shapes=label_shapes if labels else None,
                for_training=for_training,
                inputs_need_grad=bool(for_training and (inputs_need_grad or i > 0)),
                force_rebind=force_rebind,
                shared_module=None,
                grad_req=grad_req,
            )
            shapes = module.output_shapes
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._label_shapes = label_shapes if anyone else None
        self.binded = True

    @locked
    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        self._require("init_optimizer", params=True)
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(
                kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params, force_init=force_init
            )
        self.optimizer_initialized = True

    # -- computing ---------------------------------------------------------------------------------------------
    @locked
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._require("forward", params=True)
        batch = copy.copy(data_batch)  # its data change on the way
        for i, module in enumerate(self._modules):
            module.forward(batch, is_train=is_train)
            if i + 1 == len(self._modules):
                break
            batch.data = module.get_outputs()
            if getattr(batch, "provide_data", None):
                names = [s[0] for s in module.output_shapes]
                if self._takes(i + 1, self.META_AUTO_WIRING):
                    names = self._modules[i + 1].data_names
                batch.provide_data = [DataDesc(n, a.shape, a.dtype) for n, a in zip(names, batch.data)]

    @locked
    def backward(self, out_grads: Any = None) -> None:
        self._require("backward", params=True)
        for i in reversed(range(len(self._modules))):
            self._modules[i].backward(out_grads=out_grads)
            if i:
                out_grads = self._modules[i].get_input_grads()

    @locked
    def update(self) -> None:
        self._require("update", params=True, optimizer=True)
        for module in self._modules:
            module.update()

    @locked
    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_outputs", params=True)
        return self._modules[-1].get_outputs(merge_multi_context=merge_multi_context)

    @locked
    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("get_input_grads", params=True, input_grads=True)
        return self._modules[0].get_input_grads(merge_multi_context=merge_multi_context)

    @locked
    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._require("update_metric", params=True)
        for i, module in enumerate(self._modules):
            if self._takes(i, self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    @locked
    def install_monitor(self, mon: Any) -> None:
        self._require("install_monitor")
        for module in self._modules:
            module.install_monitor(mon)


def _renamed(desc: Any, name: str) -> Any:
    """A description under another name."""
    if isinstance(desc, DataDesc):
        return DataDesc(name, desc.shape, desc.dtype, desc.layout)
    return (name, *desc[1:])
