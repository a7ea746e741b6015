"""Tests of mxcore."""
