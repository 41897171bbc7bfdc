"""Scans boards and hands their posts down."""
