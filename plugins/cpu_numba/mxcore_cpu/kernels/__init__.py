"""Compute kernels of the CPU device: plain functions from arrays and scalars to given output arrays.

Every public function here writes into its output arguments and returns nothing. Arrays are float32 or
float64, all of one dtype unless said otherwise; arrays of any layout are accepted, C-contiguous ones without
a copy. Shapes are the caller's promise (the operator's shape rule has checked them): a kernel does not look
at them again.
"""
