"""Writes collected items to a database."""
