"""Which functions are also methods of arrays of ``mx.np``, and the operators of ``mx.nd`` that are."""

from __future__ import annotations

__all__ = ["METHODS", "OPERATOR_METHODS"]

#: Method -> function of the face, which is called with the array first; ``npx.`` and ``linalg.`` name sub-modules.
METHODS: dict[str, str] = {
    n: n
    for n in """
    abs all any arccos arccosh arcsin arcsinh arctan arctanh argmax argmin argpartition argsort cbrt ceil choose clip
    cos cosh cumprod cumsum degrees diag diagonal dot exp expand_dims expm1 fix flip floor log log10 log1p log2
    max mean min nanprod nansum nonzero ones_like pad prod ptp radians ravel reciprocal repeat rint
    searchsorted sign sin sinh sort split sqrt square std sum swapaxes take tan tanh tile trace trunc var zeros_like
    """.split()
}
METHODS.update({"round": "around", "norm": "linalg.norm"})
METHODS.update(
    {
        n: f"npx.{n}"
        for n in """
        arange_like log_softmax one_hot pick relu reshape_like sequence_mask shape_array sigmoid slice smooth_l1 softmax
        topk
        """.split()
    }
)
#: Method -> operator of ``mx.nd`` that nothing in ``mx.np`` stands for.
OPERATOR_METHODS: dict[str, str] = {
    "argmax_channel": "argmax_channel",
    "broadcast_axes": "broadcast_axis",
    "depth_to_space": "depth_to_space",
    "rcbrt": "rcbrt",
    "rsqrt": "rsqrt",
    "size_array": "size_array",
    "slice_axis": "slice_axis",
    "slice_like": "slice_like",
    "softmin": "softmin",
    "space_to_depth": "space_to_depth",
}
