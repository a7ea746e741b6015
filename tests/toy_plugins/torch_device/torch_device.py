"""A plugin for mxcore: the device 'torch'. PyTorch computes, on CUDA devices if there are any, else on the CPU."""

from functools import cached_property, reduce
from importlib import import_module

import numpy as np

from mxcore.plugin import ArrayAPINamespace, Device, hookimpl

API_VERSION = 1


def namespace(torch, device):
    """PyTorch, where its names and arguments are not the standard's."""
    return ArrayAPINamespace(
        torch,
        {
            # its uint16, uint32 and uint64 are for storage, hardly any function has them
            "dtypes": "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128",
            "astype": torch.Tensor.to,
            "contiguous": torch.Tensor.contiguous,
            "flip": lambda x, axis: torch.flip(x, axis),
            "max": torch.amax,
            "min": torch.amin,
            "prod": lambda x, axis, keepdims: reduce(lambda y, d: y.prod(d, keepdims), sorted(axis)[::-1], x),
            "sort": lambda x, axis: torch.sort(x, axis)[0],
            "searchsorted": lambda a, v, side: torch.searchsorted(a.contiguous(), v.contiguous(), side=side),
            "nonzero": lambda x: torch.nonzero(x, as_tuple=True),
            "take": lambda x, indices, axis: torch.index_select(x, axis, indices),
            "put_rows": lambda a, index, values: a.index_copy(0, index, values),
            "add_rows": lambda a, index, values: a.index_add(0, index, values),
        },
        device,
    )


class Torch(Device):
    """An index for each CUDA device, with PyTorch's current stream as queue; index 0 is the CPU if there is none."""

    type, type_id, array_type = "torch", 1100811027, None

    torch = cached_property(lambda self: import_module("torch"))
    cuda = cached_property(lambda self: self.torch.cuda.is_available())
    async_ = cached_property(lambda self: self.cuda)
    backend = cached_property(lambda self: self.torch.cuda if self.cuda else self.torch.cpu)
    xp = cached_property(lambda self: namespace(self.torch, "cuda" if self.cuda else "cpu"))
    dtypes = cached_property(lambda self: self.xp.dtypes)

    def count(self):
        try:
            return self.backend.device_count()
        except ImportError:
            return 0

    def to_host(self, a):
        return np.array(a.value.cpu().numpy(), order="C")

    def from_host(self, a, index):
        self.activate(index)
        return self.xp.asarray(a)

    def activate(self, index):
        self.backend.set_device(index)

    def synchronize(self, index):
        self.backend.synchronize(index)

    def record(self, index):
        return self.backend.current_stream(index).record_event()

    def wait(self, index, event):
        self.backend.current_stream(index).wait_event(event)

    def finish(self, event):
        event.synchronize()

    def memory(self, index):
        return self.torch.cuda.mem_get_info(index) if self.cuda else (0, 0)

    def empty_cache(self, index):
        self.torch.cuda.empty_cache()

    def extent(self, a):
        """The addresses between which an array that is not empty lies."""
        last = sum((n - 1) * step for n, step in zip(a.shape, a.value.stride()))
        return a.value.data_ptr(), a.value.data_ptr() + a.itemsize * (last + 1)

    def shares(self, a, b):
        (i, j), (k, m) = self.extent(a), self.extent(b)
        return a is b or bool(a.size and b.size and i < m and k < j)

    def owns(self, a):
        return not a.value._is_view() and a.value.is_contiguous() and a.value.untyped_storage().nbytes() == a.nbytes


@hookimpl
def mxcore_devices():
    """Bring the device."""
    return [Torch()]
