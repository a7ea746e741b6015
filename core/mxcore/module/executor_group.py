"""`DataParallelExecutorGroup`: one executor a context, each with its slice of the batch."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.transfer import together
from ..base import error
from ..context import Context
from ..executor import Executor
from ..io import DataDesc
from ..symbol import Symbol
from . import slicing
from .arguments import parts_of

__all__ = ["DataParallelExecutorGroup"]

#: How many other shapes of the batch keep their executors.
_SHAPES_KEPT = 16


def grad_requests(
    grad_req: Any,
    arg_names: Sequence[str],
    param_names: Sequence[str],
    data_names: Sequence[str],
    fixed: Sequence[str],
    inputs_need_grad: bool,
    for_training: bool,
) -> dict[str, str]:
    """The gradient request of each argument, from one for all parameters, a list or a dict."""
    if not for_training:
        return dict.fromkeys(arg_names, "null")
    if isinstance(grad_req, (list, tuple)):
        if len(grad_req) != len(arg_names):
            raise error(ValueError, f"{len(grad_req)} grad_reqs for {len(arg_names)} arguments {list(arg_names)}")
        return dict(zip(arg_names, grad_req))
    if not isinstance(grad_req, (str, Mapping)):
        raise error(ValueError, f"grad_req must be a str, list or dict, got {grad_req!r}")
    req = grad_req if isinstance(grad_req, str) else "write"
    found = {}
    for name in arg_names:
        wanted = (name not in fixed) if name in param_names else (name in data_names and inputs_need_grad)
        found[name] = req if wanted else "null"
    if isinstance(grad_req, Mapping):
        found.update(grad_req)
    return found


def groups_per_context(group2ctxs: Any, count: int) -> list[dict[str, Any] | None]:
    """``group2ctxs`` as one dict a context: model parallelism inside data parallelism.

    Parameters
    ----------
    group2ctxs : dict of str to Context or list of Context, list of dict, or None
    count : int
        Number of contexts of the module.
    """
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, (list, tuple)):
        if len(group2ctxs) != count:
            raise error(
                ValueError, f"group2ctxs has {len(group2ctxs)} entries for {count} contexts; give one dict a context"
            )
        return list(group2ctxs)
    if not isinstance(group2ctxs, Mapping):
        raise error(TypeError, f"group2ctxs must be a dict of contexts or a list of dicts, got {group2ctxs!r}")
    found: list[dict[str, Any] | None] = [{} for _ in range(count)]
    for group, where in group2ctxs.items():
        contexts = list(where) if isinstance(where, (list, tuple)) else [where]
        if not all(isinstance(c, (Context, str)) for c in contexts):
            raise error(TypeError, f"group2ctxs[{group!r}] must be a Context or a list of them, got {where!r}")
        if len(contexts) == 1:
            contexts *= count
        if len(contexts) != count:
            raise error(
                ValueError,
                f"group2ctxs[{group!r}] has {len(contexts)} contexts for {count} of the module; give one or {count}",
            )
        for d, ctx in zip(found, contexts):
            d[group] = ctx  # type: ignore[index]
    return found


class DataParallelExecutorGroup:
    """Executors of one symbol on several contexts, which share the work on each batch.

    Parameters
    ----------
    symbol : Symbol
    contexts : list of Context
    workload : list of float
        The share of each context.
    data_shapes, label_shapes : list of DataDesc
        `label_shapes` may be None.
    param_names : list of str
        Arguments that are parameters.
    for_training, inputs_need_grad : bool
    shared_group : DataParallelExecutorGroup, optional
        One whose parameters and memory this one uses; the two never run at the same time.
    logger : Logger
    fixed_param_names, state_names : list of str, optional
    grad_req : str, list or dict
    group2ctxs : dict or list of dict, optional
        See `Module`.

    Attributes
    ----------
    execs : list of Executor
    slices : list of slice
        The part of the batch that each context takes.
    data_arrays, label_arrays : list of list of (slice, NDArray)
    param_arrays, grad_arrays, state_arrays, aux_arrays, input_grad_arrays : list of list of NDArray
        For each name one array a context.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``module.executor_group.DataParallelExecutorGroup``. Beyond it, executors of earlier
    shapes are kept, so that a batch size that comes back costs nothing.
    """

    def __init__(
        self,
        symbol: Symbol,
        contexts: Sequence[Context],
        workload: Sequence[float],
        data_shapes: list[DataDesc],
        label_shapes: list[DataDesc] | None,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: Any = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
    ) -> None:
        self.symbol, self.contexts, self.workload = symbol, list(contexts), list(workload)
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.num_outputs = len(self.output_names)
        self.param_names = list(param_names)
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.logger = logger
        self.fixed_param_names, self.state_names = list(fixed_param_names or ()), list(state_names or ())
        self.group2ctxs = groups_per_context(group2ctxs, len(self.contexts))
        self.grad_req = grad_requests(
            grad_req,
            self.arg_names,
            self.param_names,
            [d.name for d in data_shapes],
            self.fixed_param_names,
            inputs_need_grad,
            for_training,
        )
        self.shared_data_arrays: list[dict[str, Any]] = (
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        )
        attrs = [symbol[name].attr("__layout__") for name in self.output_names]
        self.output_layouts = [DataDesc.get_batch_axis(a) for a in attrs]
        self.batch_size: Any = None  # until bound
        self.slices: list[slice] = []
        self.data_shapes: list[DataDesc] = []
        self.label_shapes: list[DataDesc] | None = None
        self._monitors: list[Any] = []
        self.execs: list[Any] = []
        self.bind_exec(data_shapes, label_shapes, shared_group)

    # -- binding -----------------------------------------------------------------------------------------------
    def decide_slices(self, data_shapes: Sequence[DataDesc]) -> list[int]:
        """Cut the batch that descriptions tell of: sets `batch_size` and `slices`.

        Parameters
        ----------
        data_shapes : list of DataDesc

        Returns
        -------
        list of int
            The batch axis of each array.
        """
        size, axes = self._batch(data_shapes, self.batch_size)
        if size is None:
            raise error(ValueError, f"no array of the batch has a batch axis 'N' in its layout: {list(data_shapes)}")
        if size != self.batch_size:
            self.batch_size, self.slices = size, slicing.split_rows(size, self.workload)
        return axes

    @staticmethod
    def _batch(descriptions: Sequence[DataDesc], size: int | None) -> tuple[int | None, list[int]]:
        axes = slicing.batch_axes(descriptions)
        for d, axis in zip(descriptions, axes):
            if axis < 0:
                continue
            if axis >= len(d.shape):
                raise error(
                    ValueError, f"{d.name} of shape {d.shape} has no axis {axis}, the batch axis of layout {d.layout!r}"
                )
            if size is not None and d.shape[axis] != size:
                raise error(
                    AssertionError,
                    f"all data must have the same batch size: it is {size}, but {d.name} has shape {d.shape}",
                )
            size = d.shape[axis]
        return size, axes

    def bind_exec(
        self,
        data_shapes: list[DataDesc],
        label_shapes: list[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None = None,
        reshape: bool = False,
    ) -> None:
        """Make the executors for shapes of batches.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc
        shared_group : DataParallelExecutorGroup, optional
        reshape : bool
            Keep the arrays of parameters of the present executors.
        """
        before = self.batch_size, self.slices
        self.batch_size = None
        try:
            self._check_names(label_shapes)
            self.data_layouts = self.decide_slices(data_shapes)
            self.label_layouts = self.decide_slices(label_shapes) if label_shapes else []
            if reshape:
                self.execs = self._reshaped(data_shapes, label_shapes)
            else:
                self.execs = [self._bind(i, data_shapes, label_shapes, shared_group) for i in range(len(self.contexts))]
                self._default_execs = self.execs
                self._kept: OrderedDict[Any, list[Any]] = OrderedDict(
                    {self._key(data_shapes, label_shapes): self.execs}
                )
        except BaseException:
            self.batch_size, self.slices = before  # what was bound before still is
            raise
        self.data_shapes, self.label_shapes = data_shapes, label_shapes
        self.data_names = [d.name for d in data_shapes]
        self.label_names = [d.name for d in label_shapes] if label_shapes is not None else []
        self._collect_arrays()

    def _check_names(self, label_shapes: list[DataDesc] | None) -> None:
        unknown = [d.name for d in label_shapes or () if d.name not in self.arg_names]
        if unknown:
            inputs = [n for n in self.arg_names if n not in self.param_names]
            raise error(
                ValueError,
                f"label_shapes describes {unknown}, which the network does not have; its inputs are {inputs}. Name "
                "the iterator's labels so (label_name=…), or pass label_names to Module and to the iterator alike",
            )

    @staticmethod
    def _key(data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None) -> tuple[Any, ...]:
        return tuple((d.name, tuple(d.shape), str(d.dtype), d.layout) for d in (*data_shapes, *(label_shapes or ())))

    def _shapes(self, i: int, descriptions: Sequence[DataDesc]) -> dict[str, tuple[int, ...]]:
        """Shapes on one context by name."""
        found = {}
        for d, axis in zip(descriptions, slicing.batch_axes(descriptions)):
            shape = list(d.shape)
            if axis >= 0:
                shape[axis] = self.slices[i].stop - self.slices[i].start
            found[d.name] = tuple(shape)
        return found

    def _bind(
        self,
        i: int,
        data_shapes: list[DataDesc],
        label_shapes: list[DataDesc] | None,
        shared_group: DataParallelExecutorGroup | None,
    ) -> Executor:
        every = [*data_shapes, *(label_shapes or ())]
        shared = None if shared_group is None else shared_group.execs[i]
        made: Executor = self.symbol.simple_bind(
            ctx=self.contexts[i],
            grad_req=self.grad_req,
            type_dict={d.name: d.dtype for d in every},
            group2ctx=self.group2ctxs[i],
            shared_arg_names=self.param_names,
            shared_exec=shared,
            shared_buffer=self.shared_data_arrays[i],
            **self._shapes(i, every),
        )
        if shared is not None:
            theirs = shared.arg_dict
            apart = [
                f"{n} {a.shape} {a.dtype.__name__}, there {theirs[n].shape} {theirs[n].dtype.__name__}"
                for n, a in made.arg_dict.items()
                if n in self.param_names and n in theirs and a is not theirs[n]
            ]
            if apart:
                raise error(
                    ValueError, f"modules that share parameters differ in their shapes or types: {'; '.join(apart)}"
                )
            made.share_outputs(shared)
        return made

    def _reshaped(self, data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None) -> list[Executor]:
        """Executors for other shapes: kept ones, or new ones over the same arrays."""
        key = self._key(data_shapes, label_shapes)
        execs = self._kept.get(key)
        if execs is not None:
            self._kept.move_to_end(key)
            return execs
        execs = []
        for i, old in enumerate(self._default_execs):
            given = self._shapes(i, [*data_shapes, *(label_shapes or ())])
            shapes = dict(zip(self.arg_names, self._inferred(given)))
            wrong = [
                f"{n} {old.arg_dict[n].shape} -> {shapes[n]}"
                for n in self.param_names
                if shapes[n] != old.arg_dict[n].shape
            ]
            if wrong:
                raise error(
                    ValueError,
                    f"batches with {given} would change the shapes of parameters: {', '.join(wrong)}; "
                    f"the module was bound with {self._shapes(i, [*self.data_shapes, *(self.label_shapes or ())])}. "
                    "A label among them is none: name it in label_names",
                )
            inputs = {n: s for n, s in shapes.items() if n not in self.param_names}
            execs.append(old.reshape(allow_up_sizing=True, **inputs))
            execs[-1].share_outputs(old)
        for monitor in self._monitors:
            for e in execs:
                monitor.install(e)
        self._kept[key] = execs
        while len(self._kept) > _SHAPES_KEPT:
            self._kept.pop(next(k for k, e in self._kept.items() if e is not self._default_execs))
        return execs

    def _inferred(self, given: Mapping[str, tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] | None = self.symbol.infer_shape(**given)[0]
        if shapes is None:
            raise error(ValueError, f"the shapes {given} do not determine those of all arguments")
        return shapes

    def reshape(self, data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None) -> None:
        """Prepare for batches of other shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc
        """
        if self.data_shapes != data_shapes or self.label_shapes != label_shapes:
            self.bind_exec(data_shapes, label_shapes, reshape=True)

    def _collect_arrays(self) -> None:
        args = [e.arg_dict for e in self.execs]
        grads = [e.grad_dict for e in self.execs]

        def of(dicts: Sequence[dict[str, Any]], names: Sequence[str]) -> list[list[Any]]:
            return [[d[n] for d in dicts] for n in names]

        def sliced(names: Sequence[str]) -> list[list[tuple[slice, Any]]]:
            return [[(rows, d[n]) for rows, d in zip(self.slices, args)] for n in names]

        self.data_arrays = sliced(self.data_names)
        self.label_arrays = sliced(self.label_names) if self.label_shapes is not None else None
        self.state_arrays = of(args, self.state_names)
        self.param_arrays = of(args, self.param_names)
        self.grad_arrays = of(grads, self.param_names) if self.for_training else None
        self.input_grad_arrays = of(grads, self.data_names) if self.inputs_need_grad else None
        self.aux_arrays = of([e.aux_dict for e in self.execs], self.aux_names)

    def reserve(self, is_train: bool) -> None:
        """Make the memory for running in a mode now, for others to share: whoever shares must not need more.

        Parameters
        ----------
        is_train : bool
        """
        for e in self._default_execs:
            e.prepare(is_train)

    # -- parameters --------------------------------------------------------------------------------------------
    def set_params(
        self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any], allow_extra: bool = False
    ) -> None:
        """Copy parameters to all contexts.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        allow_extra : bool
            Leave out what the network does not have; else that is an error.
        """
        for e in self.execs:
            e.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Mapping[str, Any], aux_params: Mapping[str, Any]) -> None:
        """Write the means over all contexts into the arrays of two dicts.

        Parameters
        ----------
        arg_params, aux_params : dict of str to NDArray
        """
        for names, arrays, into in (
            (self.param_names, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, copies in zip(names, arrays):
                if name not in into:  # a label that was not named as one
                    continue
                target = into[name]
                whole = copies[0]
                if len(copies) > 1:
                    whole = sum(
                        (c.as_in_context(target.context) for c in copies[1:]), copies[0].as_in_context(target.context)
                    )
                    whole = whole / len(copies) if whole.dtype.__name__.startswith("float") else copies[0]
                slicing.copy_into(whole, target, name)

    # -- running -----------------------------------------------------------------------------------------------
    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Load a batch and compute the outputs.

        Parameters
        ----------
        data_batch : DataBatch, or a list of one a context
        is_train : bool, optional
            As bound unless told.
        """
        train = self.for_training if is_train is None else is_train
        data, label = _contents(data_batch)
        slicing.load(data, self.data_arrays, self.data_layouts, self.data_names)
        if self.label_arrays:
            if label:
                slicing.load(label, self.label_arrays, self.label_layouts, self.label_names)
            elif is_train:
                raise error(
                    ValueError,
                    f"forward(is_train=True): the batch has no labels, the module was bound with {self.label_names}; "
                    "give the iterator labels of these names",
                )
        for e in self.execs:
            e.forward(is_train=train)

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients.

        Parameters
        ----------
        out_grads : NDArray or list of NDArray, optional
            Gradients of the outputs, over the whole batch.
        """
        if not self.for_training:
            raise error(
                AssertionError, "backward: the module was bound with for_training=False; bind it again for training"
            )
        given = None if out_grads is None else list(out_grads) if isinstance(out_grads, (list, tuple)) else [out_grads]
        wrong = next((g for g in given or () if g is not None and not hasattr(g, "shape")), None)
        if wrong is not None:
            raise error(
                TypeError, f"backward: out_grads must be an NDArray or a list with one for each output, got {wrong!r}"
            )
        for e, rows in zip(self.execs, self.slices):
            if not given:
                e.backward()
                continue
            whole = len(self.execs) == 1
            e.backward(
                [
                    None if g is None else g if whole else slicing.cut(g, axis, rows)
                    for g, axis in zip(given, self.output_layouts)
                ]
            )

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...] | None]]:
        """Names and shapes of the outputs over the whole batch.

        Returns
        -------
        list of (str, tuple of int)
        """
        found: list[tuple[str, tuple[int, ...] | None]] = []
        for i, (name, axis) in enumerate(zip(self.output_names, self.output_layouts)):
            parts = [e.outputs[i] for e in self.execs]
            if parts[0] is None:  # a shape that only the numbers tell
                found.append((name, None))
                continue
            shape = list(parts[0].shape)
            if 0 <= axis < len(shape):
                shape[axis] = sum(p.shape[axis] for p in parts)
            found.append((name, tuple(shape)))
        return found

    def get_outputs(self, merge_multi_context: bool = True, begin: int = 0, end: int | None = None) -> list[Any]:
        """The outputs of the last `forward`.

        Parameters
        ----------
        merge_multi_context : bool
            Put the parts of all contexts together; else for each output a list of them.
        begin, end : int, optional
            Which outputs.
        """
        end = self.num_outputs if end is None else end
        arrays = [[e.outputs[i] for e in self.execs] for i in range(begin, end)]
        return slicing.merge(arrays, self.output_layouts[begin:end]) if merge_multi_context else arrays

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Gradients of the data.

        Parameters
        ----------
        merge_multi_context : bool
            As in `get_outputs`.
        """
        if self.input_grad_arrays is None:
            raise error(AssertionError, "get_input_grads: the module was bound with inputs_need_grad=False")
        return (
            slicing.merge(self.input_grad_arrays, self.data_layouts) if merge_multi_context else self.input_grad_arrays
        )

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states.

        Parameters
        ----------
        merge_multi_context : bool
            As in `get_outputs`.
        """
        return (
            slicing.merge(self.state_arrays, [0] * len(self.state_arrays)) if merge_multi_context else self.state_arrays
        )

    def set_states(self, states: Any = None, value: float | None = None) -> None:
        """Set the states to arrays or all of them to a number.

        Parameters
        ----------
        states : list of list of NDArray, optional
            As `get_states` gives them, merged or not.
        value : float, optional
        """
        if (states is None) == (value is None):
            raise error(AssertionError, "set_states takes either states or value")
        if states is None:
            for arrays in self.state_arrays:
                for a in arrays:
                    a[:] = value
            return
        targets = [[(rows, a) for rows, a in zip(self.slices, arrays)] for arrays in self.state_arrays]
        slicing.load(states, targets, [0] * len(targets), self.state_names)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Take the last outputs into a metric, each context's part by itself.

        Parameters
        ----------
        eval_metric : EvalMetric
        labels : list of NDArray
            Over the whole batch; with `pre_sliced` a list of them for each context.
        pre_sliced : bool
        """
        if not hasattr(eval_metric, "update_dict"):
            raise error(
                TypeError, f"update_metric takes an EvalMetric, got {eval_metric!r}; mx.metric.create makes one"
            )
        if labels is not None and not isinstance(labels, (list, tuple)):
            raise error(
                TypeError,
                f"update_metric: labels must be a list of NDArray, got {type(labels).__name__}; write [label]",
            )
        for i, (e, rows) in enumerate(zip(self.execs, self.slices)):
            if pre_sliced:
                mine = labels[i]  # type: ignore[index]  # there are labels, then
            else:
                axes = self.label_layouts if len(self.label_layouts) == len(labels or ()) else [0] * len(labels or ())
                mine = [slicing.cut(label, axis, rows) for label, axis in zip(labels or (), axes)]
            named = OrderedDict(zip(self.label_names, mine))
            preds = OrderedDict(zip(self.output_names, e.outputs))
            try:
                eval_metric.update_dict(named, preds)
            except (ValueError, TypeError, IndexError, KeyError, AssertionError) as problem:
                kind = next(
                    k for k in (KeyError, IndexError, ValueError, TypeError, AssertionError) if isinstance(problem, k)
                )
                where = [a.context for a in (*mine, *e.outputs) if hasattr(a, "context")]
                apart = not all(together(where[0], c) for c in where)
                raise error(
                    kind,
                    f"metric {getattr(eval_metric, 'name', eval_metric)!r} cannot compare labels {_shapes(named)} with "
                    f"outputs {_shapes(preds)}: {problem}. Choose a metric for these, or say which count with its "
                    "output_names and label_names"
                    + (", or have its update() call label.as_in_context(pred.context)" if apart else ""),
                ) from problem

    def install_monitor(self, mon: Any) -> None:
        """Let a monitor watch all executors, those of later shapes, too.

        Parameters
        ----------
        mon : Monitor
        """
        if not hasattr(mon, "install"):
            raise error(TypeError, f"install_monitor takes a Monitor, got {mon!r}")
        self._monitors.append(mon)
        for execs in self._kept.values():
            for e in execs:
                mon.install(e)


def _contents(data_batch: Any) -> tuple[Any, Any]:
    """Data and labels of a batch, or of one already cut for the contexts: then for each array a list of its parts."""
    parts = parts_of(data_batch)
    if parts is None:
        return data_batch.data, getattr(data_batch, "label", None)
    data = list(zip(*(b.data for b in parts)))
    labels = [b.label for b in parts]
    return data, list(zip(*labels)) if all(labels) else None


def _shapes(arrays: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{n}: {getattr(a, 'shape', a)}" for n, a in arrays.items()) + "}"
