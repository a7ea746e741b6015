"""Fourier transforms of the last axis, and count sketches, which such transforms multiply."""
