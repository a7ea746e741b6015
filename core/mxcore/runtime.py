"""What this installation can do, as ``mxnet.runtime``."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from . import kinds
from ._core import tables
from ._reexports import reexports
from .base import error

__all__ = ["Feature", "Features", "feature_list"]

#: MXNet's names, in its order.
_NAMES = """CUDA CUDNN NCCL CUDA_RTC TENSORRT CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX
CPU_AVX2 OPENMP SSE F16C JEMALLOC BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK MKLDNN OPENCV CAFFE PROFILER
DIST_KVSTORE CXX14 INT64_TENSOR_SIZE SIGNAL_HANDLER DEBUG TVM_OP""".split()

#: Feature -> NumPy's name of what the processor has; kernels are compiled for the processor at hand.
_PROCESSOR = {
    "CPU_SSE": "SSE",
    "CPU_SSE2": "SSE2",
    "CPU_SSE3": "SSE3",
    "CPU_SSE4_1": "SSE41",
    "CPU_SSE4_2": "SSE42",
    "CPU_AVX": "AVX",
    "CPU_AVX2": "AVX2",
    "SSE": "SSE",
    "F16C": "F16C",
}
#: Feature -> how NumPy's library of linear algebra calls itself.
_BLAS = {"BLAS_OPEN": "openblas", "BLAS_ATLAS": "atlas", "BLAS_MKL": "mkl", "BLAS_APPLE": "accelerate"}


class Feature:
    """One of the features.

    Attributes
    ----------
    name : str
    enabled : bool
    """

    __slots__ = ("_name", "_enabled")

    def __init__(self, name: str, enabled: bool) -> None:
        self._name, self._enabled = name, bool(enabled)

    @property
    def name(self) -> str:
        """MXNet's name of the feature."""
        return self._name

    @property
    def enabled(self) -> bool:
        """Whether it is there."""
        return self._enabled

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def _processor() -> dict[str, bool]:
    """What the processor has, by NumPy's names."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__  # nothing public tells what is missing too
    except ImportError:
        return {}
    return dict(__cpu_features__)


def _blas() -> str:
    """Name of NumPy's library of linear algebra."""
    try:
        config: Any = np.show_config(mode="dicts")
        return str(config["Build Dependencies"]["blas"]["name"]).lower()
    except (KeyError, TypeError):
        return ""


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


#: Features that depend on what is installed. What is neither here nor in the tables above is never there.
_PRESENT: dict[str, Callable[[], bool]] = {
    "CUDA": lambda: tables.devices.find("gpu") is not None,
    "NCCL": lambda: "nccl" in kinds.names("kvstore"),
    "OPENMP": lambda: _installed("numba"),
    "OPENCV": lambda: _installed("cv2"),
    "DIST_KVSTORE": lambda: any(n.startswith("dist") for n in kinds.names("kvstore")),
    "LAPACK": lambda: True,
    "PROFILER": lambda: True,
    "INT64_TENSOR_SIZE": lambda: True,
}


def feature_list() -> list[Feature]:
    """All features, present or not.

    Returns
    -------
    list of Feature

    >>> feature_list()[0].name
    'CUDA'
    """
    processor, blas = _processor(), _blas()

    def present(name: str) -> bool:
        if name in _PRESENT:
            return _PRESENT[name]()
        if name in _BLAS:
            return _BLAS[name] in blas
        return bool(processor.get(_PROCESSOR.get(name, ""), False))

    return [Feature(name, present(name)) for name in _NAMES]


class Features(OrderedDict):  # type: ignore[type-arg]
    """The features by name; there is one such dict, made at first use.

    Examples
    --------
    >>> import mxcore as mx
    >>> mx.runtime.Features().is_enabled("LAPACK")
    True
    """

    instance: Features | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Features:
        if cls.instance is None:
            made = super().__new__(cls)
            super().__init__(made, [(f.name, f) for f in feature_list()])
            cls.instance = made
        return cls.instance

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass  # filled once, when it was made

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there.

        Parameters
        ----------
        feature_name : str
            In capitals or not.

        Raises
        ------
        MXNetError
            (also RuntimeError) if there is no such feature; lists them.
        """
        found = self.get(feature_name.upper())
        if found is None:
            raise error(RuntimeError, f"feature {feature_name!r} is unknown; known are {', '.join(self)}")
        return bool(found.enabled)


__getattr__ = reexports(__name__)
