"""All public operators over arrays."""

from .._op_functions import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "op", eager_function)
