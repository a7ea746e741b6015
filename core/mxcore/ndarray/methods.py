"""Which operators are also methods of arrays and symbols: name of the method -> name of the operator."""

from __future__ import annotations

__all__ = ["OP_METHODS"]

OP_METHODS: dict[str, str] = {
    n: n
    for n in """
    abs arccos arccosh arcsin arcsinh arctan arctanh argmax argmax_channel argmin argsort cbrt ceil clip cos cosh
    degrees depth_to_space exp expm1 fix flip floor log log10 log1p log2 log_softmax max mean min nanprod nansum norm
    one_hot ones_like pick prod radians rcbrt reciprocal relu repeat reshape_like rint round rsqrt shape_array sigmoid
    sign sin sinh size_array slice slice_axis slice_like softmax softmin sort space_to_depth sqrt square sum take tan
    tanh tile topk trunc zeros_like broadcast_like broadcast_to diag expand_dims transpose squeeze
""".split()
}
OP_METHODS.update(
    flatten="Flatten", swapaxes="SwapAxis", split="SliceChannel", pad="Pad", broadcast_axes="broadcast_axis"
)
