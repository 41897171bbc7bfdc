"""Benchmarks: every number in the documentation comes from a command here (`python -m bench`)."""
