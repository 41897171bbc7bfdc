"""A real forum to collect: django-spirit, installed, filled, served on loopback, and its database to compare with."""
