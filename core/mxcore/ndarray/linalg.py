"""Linear algebra over arrays (``mx.nd.linalg``)."""

from .._views import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "linalg", eager_function)
