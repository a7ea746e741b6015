"""Pooling over windows in one to three dimensions."""
