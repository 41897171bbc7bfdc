"""TLS as Scrapy's settings say."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def tls_context(settings: BaseSettings) -> ssl.SSLContext:
    """TLS as Scrapy's settings say; raises `ValueError` for a version that is none."""
    context = ssl.create_default_context()
    if not settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers := settings.get("DOWNLOADER_CLIENT_TLS_CIPHERS"):
        context.set_ciphers(ciphers)
    for which in ("min", "max"):
        name = f"DOWNLOAD_TLS_{which.upper()}_VERSION"
        if (version := settings.get(name)) is not None:
            if version not in _VERSIONS:
                raise ValueError(f"{name}={version} is unknown; use {', '.join(_VERSIONS)}")
            setattr(context, f"{which}imum_version", _VERSIONS[version])
    return context
