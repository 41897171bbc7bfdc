"""Collects posts and hands their comments down."""
