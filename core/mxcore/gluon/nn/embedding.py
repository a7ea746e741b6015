"""Embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..block import HybridBlock

if TYPE_CHECKING:
    from ...initializer import Initializer

__all__ = ["Embedding"]


class Embedding(HybridBlock):
    """Turn indices into vectors: row ``i`` of the weight for index ``i``.

    Parameters
    ----------
    input_dim : int
        Number of indices.
    output_dim : int
        Size of a vector.
    dtype : str or numpy dtype, default 'float32'
    weight_initializer : Initializer or str, optional
    sparse_grad : bool, default False
        Keep only the rows that a batch used in the gradient (row_sparse storage).
    **kwargs
        prefix, params.

    Notes
    -----
    Input of any shape, output with one more axis of size `output_dim`. Behaviour matched: MXNet 1.9.1
    ``gluon.nn.Embedding``.

    Examples
    --------
    >>> import mxcore as mx
    >>> layer = mx.gluon.nn.Embedding(10, 4)
    >>> layer.initialize()
    >>> layer(mx.nd.array([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        dtype: Any = "float32",
        weight_initializer: Initializer | str | None = None,
        sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._kwargs = {"input_dim": input_dim, "output_dim": output_dim, "dtype": dtype, "sparse_grad": sparse_grad}
        with self.name_scope():
            self.weight = self.params.get(
                "weight",
                shape=(input_dim, output_dim),
                init=weight_initializer,
                dtype=dtype,
                allow_deferred_init=True,
                grad_stype="row_sparse" if sparse_grad else "default",
            )

    def __repr__(self) -> str:
        k = self._kwargs
        return f"{type(self).__name__}({k['input_dim']} -> {k['output_dim']}, {k['dtype']})"

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.Embedding(x, weight, name="fwd", **self._kwargs)
