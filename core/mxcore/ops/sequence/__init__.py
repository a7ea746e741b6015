"""Sequences of different lengths in one array: mask, last step, reverse."""
