"""Storage types: conversion between dense, row_sparse and csr, and operators that keep sparse storage."""
