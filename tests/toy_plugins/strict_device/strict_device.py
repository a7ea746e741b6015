"""A plugin for mxcore: the device 'array_api_strict'. The array API standard's reference library computes."""

from functools import cached_property
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from mxcore.plugin import ArrayAPINamespace, Device, hookimpl

API_VERSION = 1


class Standard(Device):
    """A library of the standard over the host's memory: what it lacks is composed, missing dtypes are declared."""

    array_type = None

    def __init__(self, type, type_id):
        self.type, self.type_id = type, type_id

    xp = cached_property(lambda self: ArrayAPINamespace(import_module(self.type)))
    dtypes = cached_property(lambda self: self.xp.dtypes)

    def count(self):
        return int(find_spec(self.type) is not None)

    def to_host(self, a):
        return np.array(a.value, order="C")

    def from_host(self, a, index):
        return self.xp.asarray(a)

    def shares(self, a, b):
        return a is b or np.may_share_memory(np.asarray(a.value), np.asarray(b.value))

    def owns(self, a):
        host = np.asarray(a.value)
        return host.base is None and host.flags.c_contiguous


@hookimpl
def mxcore_devices():
    """Bring the device."""
    return [Standard("array_api_strict", 1100811028)]
