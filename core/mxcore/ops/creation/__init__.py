"""Operators that make arrays from nothing."""
