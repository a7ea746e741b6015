"""Blocks that run one after the other."""

from __future__ import annotations

import warnings
from typing import Any

from ..block import Block, HybridBlock
from ..block.depth import explained

__all__ = ["HybridSequential", "Sequential"]


class _Stack(Block):
    """What both containers share: a stack of children, indexed like a list."""

    _in_summary = False

    def add(self, *blocks: Block) -> None:
        """Put blocks on top of the stack."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        with explained(self):
            parts = "\n".join(f"  ({key}): {block!r}".replace("\n", "\n  ") for key, block in self._children.items())
        return f"{type(self).__name__}(\n{parts}\n)"

    def __getitem__(self, key: Any) -> Any:
        layers = list(self._children.values())[key]
        if not isinstance(layers, list):
            return layers
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*layers)
        return part

    def __len__(self) -> int:
        return len(self._children)

    def _run(self, x: Any, *args: Any) -> Any:
        """Pass the output of each child on; of several, the first is the main one."""
        for block in self._children.values():
            x = block(x, *args)
            args = ()
            if isinstance(x, (tuple, list)):
                x, args = x[0], tuple(x[1:])
        return (x, *args) if args else x


class Sequential(_Stack):
    """Blocks that run one after the other.

    Parameters
    ----------
    prefix, params
        See `Block`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.Sequential``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.Sequential()
    >>> net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.Dense(2))
    >>> len(net), net[1]
    (2, Dense(None -> 2, linear))
    """

    def forward(self, x: Any, *args: Any) -> Any:
        return self._run(x, *args)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        if self._children and all(isinstance(c, HybridBlock) for c in self._children.values()):
            warnings.warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                "HybridSequential for the best performance.",
                UserWarning,
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Stack, HybridBlock):
    """Hybrid blocks that run one after the other.

    Parameters
    ----------
    prefix, params
        See `HybridBlock`.

    Notes
    -----
    Behaviour matched: MXNet 1.9.1 ``gluon.nn.HybridSequential``.

    Examples
    --------
    >>> import mxcore as mx
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Dense(4, activation='relu'), mx.gluon.nn.Dense(2))
    >>> net.initialize()
    >>> net.hybridize()
    >>> net(mx.nd.ones((1, 3))).shape
    (1, 2)
    """

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        return self._run(x, *args)
