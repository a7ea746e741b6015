"""Tests of the plugin io_rec."""
