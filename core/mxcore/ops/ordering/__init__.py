"""Sorting and selecting by order: topk, sort, argsort."""
