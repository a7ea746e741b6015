"""Variables that cells share."""

from __future__ import annotations

from typing import Any

from .. import symbol

__all__ = ["RNNParams"]


class RNNParams:
    """Variables by name, each made when it is first asked for; cells with the same container share weights.

    Parameters
    ----------
    prefix : str
        Comes before all names.

    Examples
    --------
    >>> import mxcore as mx
    >>> params = mx.rnn.RNNParams("top_")
    >>> params.get("i2h_weight").name, params.get("i2h_weight") is params.get("i2h_weight")
    ('top_i2h_weight', True)
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Any] = {}

    def get(self, name: str, **kwargs: Any) -> Any:
        """The variable of this name.

        Parameters
        ----------
        name : str
            Without the prefix.
        **kwargs
            Arguments of ``mx.sym.Variable`` when it is made.

        Returns
        -------
        Symbol
        """
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.Variable(name, **kwargs)
        return self._params[name]
