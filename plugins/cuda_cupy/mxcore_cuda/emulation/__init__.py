"""CUDA without a GPU: NumPy's memory, kernels by g++, CuPy's rules, streams that run as late as their waits allow.

It shows wrong numbers, missing waits, what CuPy would refuse, and what reads memory that was given back. It shows
nothing of speed, of races that every order of threads hides, or of NVIDIA's libraries.
"""

from .driver import EmulatedDriver

__all__ = ["EmulatedDriver"]
