"""Tests of Gluon, against golden files from MXNet 1.9.1 where there is something to compare."""
