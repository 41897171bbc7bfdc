"""Pages over HTTPS, and by proxies: what Scrapy's download handler promises, ours keeps. Both are asked."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from crawl.answers import ANSWERS
from crawl.conftest import StageUnderTest
from crawl.crawls import Crawls
from crawl.site import RawSite, page


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A server's, with a certificate that nobody signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_a_certificate_nobody_vouches_for(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        # When certificates are looked at; then the page is not fetched
        looked: dict[str, Any] = {"settings": {"DOWNLOAD_VERIFY_CERTIFICATES": True}}
        assert crawl.error(f"{site.url}/page", **looked) == "DownloadFailedError"
        assert not site.heads
        # When they are not; then it is, and the certificate is shown
        seen = crawl.page(f"{site.url}/page", settings={"DOWNLOAD_VERIFY_CERTIFICATES": False})
        assert (seen["body"], seen["certificate"], seen["ip"]) == ("hello", True, "127.0.0.1")


def test_a_stage_looks_at_certificates_unless_told_otherwise(stage: StageUnderTest, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        stage.site.url = site.url
        stage.submit("page")
        stage.run(environment={"THREADMILL_MAX_FAILURES": "1", "THREADMILL_IDLE_CLOSE_MS": "300"}, ROBOTSTXT_OBEY=False)
        [letter] = stage.dead()
        assert "CERTIFICATE_VERIFY_FAILED" in letter.error
        assert not site.heads


def test_tls_versions_are_kept_to(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site:
        settings = {"DOWNLOAD_VERIFY_CERTIFICATES": False, "DOWNLOAD_TLS_MAX_VERSION": "TLSv1.2"}
        assert crawl.page(f"{site.url}/page", settings=settings)["status"] == 200
        tls.minimum_version = ssl.TLSVersion.TLSv1_3
        assert crawl.error(f"{site.url}/page", settings=settings) == "DownloadFailedError"
        tls.minimum_version = ssl.TLSVersion.TLSv1_2


# Proxies -------------------------------------------------------------------------------------------------------------

SECRET = base64.b64encode(b"me:secret").decode()


def test_by_a_proxy(crawl: Crawls) -> None:
    with RawSite({"http://site.invalid/page": page(b"by proxy")}) as proxy:
        # When a page is asked for by a proxy, with credentials
        meta = {"proxy": proxy.url.replace("//", "//me:secret@")}
        seen = crawl.page({"url": "http://site.invalid/page", "meta": meta})
        # Then the proxy is asked for it, and told who asks
        assert seen["body"] == "by proxy"
        assert f"proxy-authorization: basic {SECRET}".lower() in proxy.said("http://site.invalid/page").lower()
        assert "\r\nhost: site.invalid\r\n" in proxy.said("http://site.invalid/page").lower()


def test_through_a_proxy_s_tunnel(crawl: Crawls, tls: ssl.SSLContext) -> None:
    with RawSite(ANSWERS, tls) as site, RawSite() as proxy:
        meta = {"proxy": proxy.url.replace("//", "//me:secret@")}
        settings = {"DOWNLOAD_VERIFY_CERTIFICATES": False}
        seen = crawl.page({"url": f"{site.url}/page", "meta": meta}, settings=settings)
        # Then the proxy is told who asks, and the site is not
        assert seen["body"] == "hello"
        [connect] = proxy.heads
        assert connect.startswith(f"CONNECT 127.0.0.1:{site.port} ".encode())
        assert f"proxy-authorization: basic {SECRET}".lower() in connect.decode().lower()
        assert "proxy-authorization" not in site.said("/page").lower()


def test_what_is_for_a_proxy_does_not_go_to_the_site(crawl: Crawls, raw: RawSite) -> None:
    headers = {"Proxy-Authorization": f"Basic {SECRET}"}
    assert "proxy-authorization" not in crawl.page({"url": f"{raw.url}/show", "headers": headers})["body"].lower()


def test_a_proxy_that_refuses_the_tunnel(crawl: Crawls) -> None:
    with RawSite() as site:  # answers no CONNECT for a host that is not there
        error = crawl.error({"url": "https://127.0.0.1:1/", "meta": {"proxy": site.url}})
        assert error in {"TunnelError", "DownloadFailedError"}


def test_a_proxy_that_is_not_there(crawl: Crawls, raw: RawSite) -> None:
    meta = {"proxy": "http://127.0.0.1:1"}
    assert crawl.error({"url": f"{raw.url}/page", "meta": meta}) == "DownloadConnectionRefusedError"
