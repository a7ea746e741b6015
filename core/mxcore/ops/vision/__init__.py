"""Sampling, resizing and comparing images, and pooling over regions of interest."""
