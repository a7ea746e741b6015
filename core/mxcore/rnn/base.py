"""What all recurrent cells of symbols have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ndarray, symbol
from ..base import asserted, error
from .params import RNNParams
from .sequence import normalized

__all__ = ["BaseRNNCell"]


class BaseRNNCell:
    """Base of the cells: one step of a recurrent network, from an input and states to an output and new states.

    Parameters
    ----------
    prefix : str
        Comes before the names of all nodes and parameters of the cell.
    params : RNNParams, optional
        Variables to share with other cells; new ones unless told.

    Notes
    -----
    A cell of your own has `state_info` and ``__call__(inputs, states)``, and `_gate_names` if its weights hold several
    gates. Behaviour matched: MXNet 1.9.1 ``mx.rnn``.

    Examples
    --------
    >>> import mxcore as mx
    >>> class Sum(mx.rnn.BaseRNNCell):
    ...     state_info = [{"shape": (0, 4)}]
    ...     def __call__(self, inputs, states):
    ...         total = inputs + states[0]
    ...         return total, [total]
    >>> outputs, states = Sum("sum_").unroll(3, mx.sym.Variable("x"))
    >>> outputs[2].eval(x=mx.nd.ones((1, 3, 4)))[0].asnumpy()
    array([[3., 3., 3., 3.]], dtype=float32)
    """

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Count steps and states from 0 again, before the cell is used in another graph."""
        self._init_counter = -1
        self._counter = -1

    def __call__(self, inputs: Any, states: Any) -> tuple[Any, list[Any]]:
        """Compute one step.

        Parameters
        ----------
        inputs : Symbol
            (batch, features).
        states : list of Symbol
            As `begin_state` or the step before gave them.

        Returns
        -------
        (Symbol, list of Symbol)
            Output and new states.
        """
        raise error(
            NotImplementedError,
            f"{type(self).__name__} has no step of its own; a cell class defines __call__(inputs, states)",
        )

    @property
    def params(self) -> RNNParams:
        """The variables of the cell; who asks for them shares them."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[Any]:
        """Shape (0 is the batch) and ``__layout__`` of each state."""
        raise error(
            NotImplementedError,
            f"{type(self).__name__} does not say what states it has; a cell class defines state_info",
        )

    @property
    def state_shape(self) -> list[Any]:
        """Shape of each state; 0 is the batch."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Any:
        """Endings of the names of the gates, in the order of the rows of the weights."""
        return ()

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def _get_activation(self, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """Apply an activation: a name of the operator Activation, or a function of a symbol."""
        if isinstance(activation, str):
            return symbol.Activation(inputs, act_type=activation, **kwargs)
        return activation(inputs, **kwargs)

    def _step_name(self) -> str:
        """Prefix of the names in the next step."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def begin_state(self, func: Callable[..., Any] = symbol.zeros, **kwargs: Any) -> list[Any]:
        """States to begin with.

        Parameters
        ----------
        func : callable
            Makes each from ``name`` and ``shape``: ``mx.sym.zeros``, ``mx.sym.Variable``, ``mx.sym.ones`` …
        **kwargs
            Given to `func`, with what `state_info` says.

        Returns
        -------
        list of Symbol

        Raises
        ------
        MXNetError
            (also ValueError) if another cell wraps this one; ask that.
        """
        if self._modified:
            raise asserted(
                ValueError,
                f"begin_state: this {type(self).__name__} is wrapped by another cell "
                "(zoneout, residual); call begin_state of that",
            )
        states = []
        for info in self.state_info:
            self._init_counter += 1
            kwargs.update(info or {})
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **kwargs))
        return states

    def unpack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Split the weights into one array a gate.

        Parameters
        ----------
        args : dict of str to NDArray

        Returns
        -------
        dict of str to NDArray
            ``<prefix>i2h_weight`` has become ``<prefix>i2h_i_weight`` and so on; what is not this cell's is as it was.

        Raises
        ------
        MXNetError
            (also ValueError) if an array is missing.
        """
        args = dict(args)
        h = getattr(self, "_num_hidden", 0)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                whole = self._taken(args, f"{self._prefix}{group}_{kind}", "unpack_weights")
                for j, gate in enumerate(self._gate_names):
                    args[f"{self._prefix}{group}{gate}_{kind}"] = whole[j * h : (j + 1) * h].copy()
        return args

    def pack_weights(self, args: dict[str, Any]) -> dict[str, Any]:
        """Join the weights again: the reverse of `unpack_weights`.

        Parameters
        ----------
        args : dict of str to NDArray

        Returns
        -------
        dict of str to NDArray

        Raises
        ------
        MXNetError
            (also ValueError) if an array is missing.

        Examples
        --------
        >>> import mxcore as mx
        >>> cell = mx.rnn.RNNCell(2, prefix="r_")
        >>> shapes = {"i2h_weight": (2, 2), "i2h_bias": (2,), "h2h_weight": (2, 2), "h2h_bias": (2,)}
        >>> whole = {f"r_{name}": mx.nd.ones(shape) for name, shape in shapes.items()}
        >>> sorted(cell.pack_weights(cell.unpack_weights(whole))) == sorted(whole)
        True
        """
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [
                    self._taken(args, f"{self._prefix}{group}{gate}_{kind}", "pack_weights")
                    for gate in self._gate_names
                ]
                args[f"{self._prefix}{group}_{kind}"] = ndarray.concat(*parts, dim=0) if len(parts) > 1 else parts[0]
        return args

    def _taken(self, args: dict[str, Any], name: str, what: str) -> Any:
        if name not in args:
            mine = [n for n in args if n.startswith(self._prefix)]
            raise error(
                ValueError,
                f"{what}: {type(self).__name__} needs {name!r}; "
                f"of the arrays given, {mine[:8] or 'none'} begin with {self._prefix!r}",
            )
        return args.pop(name)

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        """Repeat the cell for all steps of a sequence.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : Symbol or list of Symbol
            One of shape (batch, length, features), or as `layout` says; or one of (batch, features) a step.
        begin_state : list of Symbol, optional
            Zeros unless told.
        layout : str
            ``'NTC'`` or ``'TNC'``; that of `inputs` and of merged outputs.
        merge_outputs : bool, optional
            True: outputs are one symbol; False: a list; None: what is cheaper.

        Returns
        -------
        (Symbol or list of Symbol, list of Symbol)
            Outputs of all steps, and the states after the last.

        Raises
        ------
        MXNetError
            (also ValueError or TypeError) if steps and inputs do not fit, or the layout has no axis T.

        Examples
        --------
        >>> import mxcore as mx
        >>> cell = mx.rnn.GRUCell(4)
        >>> outputs, states = cell.unroll(3, mx.sym.Variable("x"), merge_outputs=True)
        >>> outputs.infer_shape(x=(2, 3, 5))[1]
        [(2, 3, 4)]
        """
        self.reset()
        inputs, _ = normalized(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for i in range(length):
            output, states = self(inputs[i], states)
            outputs.append(output)
        merged, _ = normalized(length, outputs, layout, merge_outputs)
        return merged, states
