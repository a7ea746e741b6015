"""`PythonModule` and `PythonLossModule`: modules written in Python, without parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import ndarray as nd
from ..base import error
from ..initializer import Uniform
from ..ndarray import NDArray
from .base_module import BaseModule
from .names import parse_data_desc

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """A module without parameters, whose subclass computes in Python.

    A subclass defines `forward`, `get_outputs`, `_compute_output_shapes` and, for training, `backward` and
    `get_input_grads`.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
        `label_names` may be None.
    logger : Logger

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.PythonModule``.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Halve(mx.mod.PythonModule):
    ...     def _compute_output_shapes(self):
    ...         return [("half_output", self.data_shapes[0].shape)]
    ...     def forward(self, data_batch, is_train=None):
    ...         self.out = data_batch.data[0] / 2
    ...     def get_outputs(self, merge_multi_context=True):
    ...         return [self.out]
    >>> mod = Halve(["data"], None, ["half_output"])
    >>> mod.bind([("data", (2,))])
    >>> mod.forward(mx.io.DataBatch([mx.nd.array([2, 4])]))
    >>> mod.get_outputs()[0].asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        data_names: Iterable[str],
        label_names: Iterable[str] | None,
        output_names: Iterable[str],
        logger: Any = logging,
    ) -> None:
        super().__init__(logger)
        self._data_names = list(data_names)
        self._label_names: Any = list(label_names) if label_names is not None else None
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        return {}, {}

    def init_params(
        self,
        initializer: Any = Uniform(0.01),
        arg_params: Mapping[str, Any] | None = None,
        aux_params: Mapping[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Do nothing: there are no parameters."""
        self.params_initialized = True

    def update(self) -> None:
        """Do nothing: there are no parameters."""

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Do nothing: there are no parameters."""
        self.optimizer_initialized = True

    def install_monitor(self, mon: Any) -> None:
        """Do nothing: there is no executor to watch."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        if self._label_shapes is None:
            return  # outputs without labels, as of a layer in the middle
        if pre_sliced:
            raise error(
                RuntimeError, f"{type(self).__name__} runs on one context and does not take labels cut for several"
            )
        eval_metric.update(labels, self.get_outputs())

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
        if grad_req != "write":
            raise error(AssertionError, f"{type(self).__name__}: grad_req must be 'write', got {grad_req!r}")
        self._data_shapes, self._label_shapes = parse_data_desc(
            self._data_names, self._label_names or (), data_shapes, label_shapes
        )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> list[tuple[str, Any]]:
        """Names and shapes of the outputs for `data_shapes`; subclasses define it."""
        raise self._absent("_compute_output_shapes()")


class PythonLossModule(PythonModule):
    """A loss written in Python: hands its input on, and computes its gradient.

    Parameters
    ----------
    name : str
        Its output is ``<name>_output``.
    data_names, label_names : list of str
        One name each.
    logger : Logger
    grad_func : callable, optional
        (scores, labels) -> gradient of the scores, NDArray or anything that becomes one.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``mx.mod.PythonLossModule``.

    Examples
    --------
    >>> import mxcore as mx
    >>> loss = mx.mod.PythonLossModule(grad_func=lambda scores, labels: scores - labels)
    >>> loss.bind([("data", (2,))], [("softmax_label", (2,))])
    >>> loss.forward(mx.io.DataBatch([mx.nd.array([3, 1])], [mx.nd.array([1, 1])]), is_train=True)
    >>> loss.backward()
    >>> loss.get_input_grads()[0].asnumpy()
    array([2., 0.], dtype=float32)
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Any = ("data",),
        label_names: Any = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(data_names, label_names, [name + "_output"], logger=logger)
        if len(self._data_names) != 1 or len(self._label_names or ()) != 1:
            raise error(
                AssertionError, f"PythonLossModule takes one data and one label, got {data_names} and {label_names}"
            )
        if grad_func is not None and not callable(grad_func):
            raise error(TypeError, f"grad_func must be a function of scores and labels, got {grad_func!r}")
        self._name, self._grad_func = name, grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: NDArray | None = None

    def _compute_output_shapes(self) -> list[tuple[str, Any]]:
        return [(self._name + "_output", self._data_shapes[0].shape)]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            if not data_batch.label:
                raise error(ValueError, f"forward for training: the batch has no label {self._label_names[0]!r}")
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        if not merge_multi_context:
            raise error(AssertionError, "PythonLossModule runs on one context; merge_multi_context must be True")
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        if out_grads is not None:
            raise error(AssertionError, "For a loss module, out_grads should be None")
        if not self.for_training:
            raise error(
                AssertionError, "backward: the module was bound with for_training=False; bind it again for training"
            )
        self._backward_impl()

    def _backward_impl(self) -> None:
        """Set `_scores_grad`; subclasses may override it instead of giving `grad_func`."""
        if self._grad_func is None:
            raise self._absent("its gradient: give grad_func, or override _backward_impl()")
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, nd.NDArray) else nd.array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        if not merge_multi_context:
            raise error(AssertionError, "PythonLossModule runs on one context; merge_multi_context must be True")
        return [self._scores_grad]
