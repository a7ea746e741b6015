"""Reductions over axes, places of extremes, statistics."""
