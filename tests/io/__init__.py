"""Tests of mx.io."""
