"""Elementwise operators: arithmetic, comparison and logic, functions of one array, casts."""
