"""Collects comment trees."""
