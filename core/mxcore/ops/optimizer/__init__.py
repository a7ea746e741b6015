"""Optimizer updates: of one weight, of layers as wholes, of many weights in one call."""
