"""A real forum to collect: django-spirit, seeded, served on loopback. Its database is the truth."""
