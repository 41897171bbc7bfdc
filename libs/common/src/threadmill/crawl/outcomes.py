"""What becomes of a page that did not simply succeed: an outcome, a retry, or a dead letter."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

from threadmill.crawl.hosts import OffHostError
from threadmill.model.errors import ExtractionError, TaskError

GONE = (404, 410)
GONE_COUNTER = "gone"
"""What such pages are counted as."""
TOLD_TO_WAIT = (429, 503)
UNTOLD_PAUSE = 3
"""A 429 without Retry-After pauses the site like a third failure: 8 s by default."""
UNPACKED_TOO_LARGE = "_DecompressionMaxSizeExceeded"
"""What Scrapy's compression middleware met when it ignores a response: DOWNLOAD_MAXSIZE, reached while unpacking."""
LONGEST_WAIT_MS = 3_600_000
"""A site's Retry-After is honoured up to one hour."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The page is done; `counter` says how: `gone`, `ignored`."""

    counter: str


@dataclass(frozen=True, slots=True)
class Retry:
    """The page waits `wait_ms` and is tried again; the whole site is left alone for `pause_ms`."""

    reason: str
    error: str
    wait_ms: int
    pause_ms: int = 0
    counts: bool = True


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No retry will help."""

    reason: str
    error: str


Outcome = Settled | Retry | GiveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter: `base_ms * 2^failures`, times 0.5 to 1.5, at most `max_ms`."""

    base_ms: int = 1_000
    max_ms: int = 300_000

    def backoff_ms(self, failures: int) -> int:
        return int(min(self.max_ms, self.base_ms * 2 ** min(failures, 30)) * random.uniform(0.5, 1.5))

    def outcome_of(self, error: BaseException, failures: int) -> Outcome:
        """Judge an exception that ended a page which had failed `failures` times before."""
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, HttpError):
            return self._of_response(error.response, failures)
        if isinstance(error, IgnoreRequest):
            return self._of_ignored(error, text, failures)
        if isinstance(error, TaskError):
            return GiveUp(error.reason, text)
        if isinstance(error, ExtractionError):
            return Retry("unreadable", text, self.backoff_ms(failures))
        if type(error).__name__ == "DownloadCancelledError":  # DOWNLOAD_MAXSIZE; the name is new in Scrapy 2.15
            return Retry("too-large", text, self.backoff_ms(failures))
        reason = "unreachable" if _is_download_error(error) else "callback"
        return Retry(reason, text, self.backoff_ms(failures))

    def _of_ignored(self, error: IgnoreRequest, text: str, failures: int) -> Outcome:
        """Most middlewares mean it. What a site may take back tomorrow is no reason to call a post done."""
        if isinstance(error, OffHostError):
            return Retry("off-host", text, self.backoff_ms(failures))
        if str(error) == "max redirections reached":
            return Retry("redirects", text, self.backoff_ms(failures))
        if type(error.__cause__).__name__ == UNPACKED_TOO_LARGE:
            return Retry("too-large", text, self.backoff_ms(failures))
        if str(error) == "Forbidden by robots.txt":
            return GiveUp("robots", text)
        return Settled("ignored")

    def _of_response(self, response: Response, failures: int) -> Outcome:
        if response.status in GONE:
            return Settled(GONE_COUNTER)
        reason, text = f"http-{response.status}", f"HTTP {response.status} from {response.url}"
        asked = retry_after_ms(response)
        if response.status in TOLD_TO_WAIT and asked is not None:
            # Told to wait: all replicas do, and it is no failure. Jitter keeps them from coming back at once.
            return Retry(reason, text, int(asked * random.uniform(1.0, 1.2)), pause_ms=asked, counts=False)
        if response.status == 429:  # the site did not say how long
            wait = self.backoff_ms(UNTOLD_PAUSE)
            return Retry(reason, text, wait, pause_ms=wait, counts=False)
        return Retry(reason, text, self.backoff_ms(failures))


def retry_after_ms(response: Response) -> int | None:
    """The response's Retry-After in ms, from seconds or a date, between 0 and one hour; None if it has none."""
    value = response.headers.get("Retry-After")
    if value is None:
        return None
    text = value.decode("latin-1").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = (when - datetime.now(UTC if when.tzinfo else None)).total_seconds()
    return int(min(max(seconds, 0.0) * 1000, LONGEST_WAIT_MS)) if seconds == seconds else None  # noqa: PLR0124 - NaN


def _is_download_error(error: BaseException) -> bool:
    """Whether the downloader raised it (twisted.internet.error, twisted.web, scrapy's own download exceptions)."""
    module = type(error).__module__
    return isinstance(error, OSError) or module.startswith(("twisted.", "OpenSSL")) or module == "scrapy.exceptions"
