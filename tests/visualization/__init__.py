"""Tests of tables and pictures of graphs."""
