"""All public operators over arrays."""

from .._views import eager_function, namespace

__getattr__, __dir__ = namespace(globals(), "op", eager_function)
