"""An old name of SGD."""

from .sgd import SGD


class ccSGD(SGD):
    """`SGD` under an old name, kept for old scripts.

    Parameters
    ----------
    *args, **kwargs
        As for `SGD`.

    Examples
    --------
    >>> ccSGD(momentum=0.9).momentum
    0.9
    """
