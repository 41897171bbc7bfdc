"""Django's settings: those of a new Spirit project, with a database, caches and search of the rig's own."""

import os
from pathlib import Path

from spirit.extra.project_template.project_name.settings.base import *  # noqa: F403

DATA = Path(os.environ["SPIRIT_DATA"])

SECRET_KEY = "a forum on loopback that lives for a minute"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "spirit.extra.project_template.project_name.urls"
WSGI_APPLICATION = None
MEDIA_ROOT = str(DATA / "media")
STATIC_ROOT = str(DATA / "static")
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(DATA / "spirit.sqlite3"),
        "OPTIONS": {
            "timeout": 30,
            # Each visit of a topic writes its view count, from several threads at a time.
            "transaction_mode": "IMMEDIATE",
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;",
        },
    }
}
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "st_rate_limit": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "rate",
        "TIMEOUT": None,
    },
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
HAYSTACK_SIGNAL_PROCESSOR = "haystack.signals.BaseSignalProcessor"
ST_SITE_URL = "http://127.0.0.1/"
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
