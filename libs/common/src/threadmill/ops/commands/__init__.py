"""The commands of `threadmill`, a module a noun; `ops/app.py` puts them together."""
