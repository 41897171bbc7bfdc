"""Answers of a raw site, byte for byte: well-formed, unusual, cut short, and none at all."""

from __future__ import annotations

from crawl.site import Canned, page

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 100

ANSWERS = {
    "/page": page(b"hello", "Content-Type: text/plain"),
    "/odd": page(b"x", "X-Twice: one", "x-twice: two", "X-Latin: caf\xe9", status="404 Non trouv\xe9"),
    "/no-reason": page(b"x", status="200 "),
    "/own-status": page(b"x", status="999 Go away"),
    "/latin": page("café".encode("latin-1"), "Content-Type: text/html; charset=latin-1"),
    "/long-line": page(b"x", "X-Long: " + "y" * 12_000),
    "/many-lines": page(b"x", *(f"X-{n}: {n}" for n in range(100))),
    "/empty": page(b""),
    "/no-content": Canned(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "/not-modified": Canned(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
    "/hints": Canned(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + page(b"after").reply),
    "/old": Canned(b"HTTP/1.0 200 OK\r\n\r\nold", then="close"),
    "/chunks": Canned(CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    "/moved": page(b"", "Location: /page", status="302 Found"),
    "/cookie": page(b"x", "Set-Cookie: known=1; Path=/"),
    "/leave": Canned(page(b"x").reply, then="leave"),
    "/hang": Canned(b"", then="hang"),
    "/hang-in-body": Canned(CUT, then="hang"),
    "/endless": Canned(CHUNKED, then="go on"),
    "/big": page(b"x" * 50_000),
    "/cut": Canned(CUT, then="close"),
    "/cut-chunks": Canned(CHUNKED + b"5\r\nhello\r\n", then="close"),
    "/cut-by-reset": Canned(CUT, then="reset"),
    "/bad-chunk": Canned(CHUNKED + b"5\r\nhello\r\nzz\r\n", then="close"),
    "/closed": Canned(b"", then="close"),
    "/reset": Canned(b"", then="reset"),
    "/garbage": Canned(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", then="close"),
}
