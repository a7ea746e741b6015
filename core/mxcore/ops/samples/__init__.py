"""Samples of the stock operators: a table for each module of operators, imported when somebody asks for samples."""
