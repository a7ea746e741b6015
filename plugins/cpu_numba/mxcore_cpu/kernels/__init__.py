"""Compute kernels of the CPU device: plain functions from arrays and scalars to given output arrays.

Every public function here writes into its ``out`` arguments and returns nothing. Arrays are float32 or float64, all of one
dtype unless said otherwise; inputs of any layout are accepted, C-contiguous ones without a copy.
"""
