"""Linear algebra over arrays (``mx.nd.linalg``)."""

from .._op_functions import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "linalg", eager_function)
