"""Ranges along axes: slices, crops, writing to them."""
