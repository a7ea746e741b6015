"""What the networks are put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ....context import cpu
from ... import nn
from ...block import HybridBlock
from ..model_store import get_model_file

if TYPE_CHECKING:
    from ....context import Context

__all__ = ["Network", "conv_norm", "in_sequence", "pretrained_or_not", "stage", "variants"]


class Network(HybridBlock):
    """A network of the zoo: `features` of images, and what `output` makes of them."""

    features: nn.HybridSequential
    output: HybridBlock

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


Net = TypeVar("Net", bound=Network)


def in_sequence(*layers: HybridBlock) -> nn.HybridSequential:
    """Layers one after the other, named as if they stood alone."""
    out = nn.HybridSequential(prefix="")
    out.add(*layers)
    return out


def stage(prefix: str, make: Callable[[], Iterable[HybridBlock]]) -> nn.HybridSequential:
    """Layers one after the other with a prefix of their own.

    Parameters
    ----------
    prefix : str
    make : callable
        Returns the layers; called inside the name scope.
    """
    out = nn.HybridSequential(prefix=prefix)
    with out.name_scope():
        out.add(*make())
    return out


def conv_norm(
    channels: int,
    kernel: int | tuple[int, int] = 1,
    stride: int = 1,
    pad: int | tuple[int, int] = 0,
    groups: int = 1,
    act: str | type[HybridBlock] | None = "relu",
    **norm: Any,
) -> list[HybridBlock]:
    """A convolution without bias, batch normalisation and an activation, as a list."""
    layers: list[HybridBlock] = [
        nn.Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False),
        nn.BatchNorm(**norm),
    ]
    if act is not None:
        layers.append(nn.Activation(act) if isinstance(act, str) else act())
    return layers


def pretrained_or_not(
    net: Net, name: str, pretrained: bool, ctx: Context | Sequence[Context] | None, root: str | None
) -> Net:
    """The network, with published parameters if they are asked for."""
    if pretrained:
        net.load_parameters(get_model_file(name, root=root), ctx=cpu() if ctx is None else ctx)
    return net


def variants(module: str, what: str, make: Callable[..., Any], **table: Any) -> dict[str, Callable[..., Any]]:
    """Functions that make the variants of a network.

    Parameters
    ----------
    module : str
        Where they are.
    what : str
        Name of the network for their docstrings.
    make : callable
        Makes a variant from the positional arguments in the table and the caller's keywords.
    **table
        Name to arguments.

    Returns
    -------
    dict of str to callable
    """

    def variant(name: str, args: tuple[Any, ...]) -> Callable[..., Any]:
        def build(**kwargs: Any) -> Any:
            return make(*args, **kwargs)

        build.__name__ = build.__qualname__ = name
        build.__module__ = module
        build.__doc__ = f"""{what}, variant ``{name}``.

    Parameters
    ----------
    pretrained : bool, default False
        Load the published parameters (ImageNet).
    ctx : Context, default cpu()
        Where to put them.
    root : str, default '~/.mxnet/models'
        Folder where parameter files are kept.
    **kwargs
        classes and other arguments of the network.
    """
        return build

    return {name: variant(name, args) for name, args in table.items()}
