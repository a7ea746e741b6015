"""Contributed operators over arrays (``mx.nd.contrib``)."""
from .._core.frontend import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "contrib", eager_function)
