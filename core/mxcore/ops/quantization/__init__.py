"""Quantisation: numbers of eight bits with their ranges, and layers that compute with them."""
