"""Convolution, its transpose, deformable windows, images as columns of patches."""
