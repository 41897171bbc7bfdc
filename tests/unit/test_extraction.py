"""Extraction: what a page gives by the rules of its source. A wrong page gives an error, never nothing."""

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from threadmill.crawl.extraction import Extract, Extractor, Handdown
from threadmill.model.errors import ExtractionError
from threadmill.model.items import item_from
from threadmill.model.source import Source, load_source

SOURCES = Path(__file__).parents[2] / "sources"
BBS = load_source("bbs", search=[SOURCES])
SPIRIT = load_source("spirit", search=[SOURCES])


def read(source: Source, stage: str, body: object, **task: Any) -> Extract:
    """Extract a page: bytes, text, or anything that becomes JSON."""
    if isinstance(body, str):
        body = body.encode()
    page = body if isinstance(body, bytes) else orjson.dumps(body)
    known: dict[str, Any] = {"url": "http://127.0.0.1:8000/p", "encoding": None, "key": "1"}
    return Extractor(source, stage).extract(page, **(known | {"page": 1, "params": {}} | task))


class TestBbs:
    """The three JSON interfaces."""

    def test_a_list_page_hands_down_its_posts_with_their_versions(self) -> None:
        # Given the second of three pages with two posts
        posts = [
            {"post_id": "7", "comment_count": 3, "last_reply_at": "2026-01-02T03:04:05Z", "title": "a"},
            {"post_id": 8, "comment_count": 0, "last_reply_at": None, "title": "b"},
        ]
        body = {"forum_id": "5", "page": 2, "pages": 3, "posts": posts}
        # When it is read
        extract = read(BBS, "list", body, key="5", page=2)
        # Then both are handed down, ids as text, and the third page follows
        assert extract == Extract(
            items=[],
            handdowns=[
                Handdown("detail", "7", "2026-01-02T03:04:05Z|3", {}),
                Handdown("detail", "8", "|0", {}),
            ],
            next_page=3,
            rows=2,
            params={},
        )

    def test_the_last_page_has_no_next_one(self) -> None:
        body = {"forum_id": "5", "page": 3, "pages": 3, "posts": []}
        assert read(BBS, "list", body, key="5", page=3).next_page is None

    def test_a_post_is_an_item_and_hands_its_comments_down(self) -> None:
        # Given a post with two comments
        post = {
            "post_id": "7",
            "forum_id": 5,
            "title": "Ünï",
            "body": "text ",
            "author": None,
            "published_at": "2026-01-02T03:04:05+02:00",
            "views": "1,234",
            "comment_count": 2,
            "url": "/BBS/post/7",
        }
        # When it is read
        extract = read(BBS, "detail", post, key="7")
        # Then the item has every field, each of its type
        assert extract.items == [
            {
                "type": "post",
                "source": "bbs",
                "post_id": "7",
                "forum_id": "5",
                "title": "Ünï",
                "body": "text ",
                "author": None,
                "published_at": "2026-01-02T01:04:05Z",
                "views": 1234,
                "comment_count": 2,
                "url": "http://127.0.0.1:8000/BBS/post/7",
                "extra": {},
            }
        ]
        assert extract.handdowns == [Handdown("comment", "7", "2", {})]
        assert extract.next_page is None

    @pytest.mark.parametrize("count", [0, None])
    def test_a_post_without_comments_hands_nothing_down(self, count: int | None) -> None:
        assert read(BBS, "detail", {"post_id": "7", "comment_count": count, "url": "/7"}, key="7").handdowns == []

    def test_comments_are_items_of_their_post(self) -> None:
        # Given a page of comments, one a reply
        comments = [
            {
                "comment_id": 1,
                "parent_id": None,
                "author": "a",
                "body": "x",
                "published_at": "2026-01-02T03:04:05Z",
            },
            {
                "comment_id": 2,
                "parent_id": 1,
                "author": "b",
                "body": "",
                "published_at": "2026-01-02T03:04:05.5Z",
            },
        ]
        # When it is read
        extract = read(BBS, "comment", {"post_id": "7", "page": 1, "pages": 2, "comments": comments}, key="7")
        # Then
        first, second = extract.items
        assert first == {
            "type": "comment",
            "source": "bbs",
            "comment_id": "1",
            "post_id": "7",
            "parent_id": None,
            "author": "a",
            "body": "x",
            "published_at": "2026-01-02T03:04:05Z",
            "url": None,
            "extra": {},
        }
        assert (second["parent_id"], second["body"], second["published_at"]) == (
            "1",
            "",
            "2026-01-02T03:04:05.500000Z",
        )
        assert extract.next_page == 2
        assert all(item_from(item) for item in extract.items)

    @pytest.mark.parametrize(
        ("stage", "body", "says"),
        [
            ("list", b"<html>Please log in</html>", "is not JSON"),
            ("list", b"", "is not JSON"),
            ("list", b'{"forum_id": "1", "page": 1, "pages": 1}', "no list at 'posts'"),
            ("list", {"forum_id": "1", "page": 1, "pages": 1, "posts": {}}, "no list at 'posts'"),
            (
                "list",
                {"forum_id": "1", "page": 1, "pages": 1, "posts": [{"title": "t"}]},
                "key for detail is missing",
            ),
            ("list", {"forum_id": "1", "page": 1, "posts": []}, "whether another one follows"),
            ("list", {"forum_id": "2", "page": 1, "pages": 1, "posts": []}, "says that it is '2', not '1'"),
            ("list", {"forum_id": "1", "page": 2, "pages": 9, "posts": []}, "says that it is page 2, not 1"),
            ("detail", {"error": "try again"}, "identity is missing"),
            ("detail", [], "identity is missing"),
            ("detail", {"post_id": "1", "views": "many"}, "views 'many' is not a whole number"),
            ("detail", {"post_id": "1", "published_at": "yesterday"}, "not an ISO 8601 time"),
            ("detail", {"post_id": "1", "title": ["a"]}, "is not text"),
            (
                "comment",
                {
                    "post_id": "1",
                    "page": 1,
                    "pages": 1,
                    "comments": [{"comment_id": "1"}, {"comment_id": ""}],
                },
                r"row 2 of 2\) whose comment_id is missing",
            ),
        ],
    )
    def test_a_page_of_another_kind_is_an_error(self, stage: str, body: object, says: str) -> None:
        # Given what is no such page, when it is read, then the error names source, stage and reason
        with pytest.raises(ExtractionError, match=says) as error:
            read(BBS, stage, body)
        assert f"{stage} page of source bbs" in str(error.value)

    def test_nul_characters_are_left_out(self) -> None:
        # Given text that no store can hold
        body = b'{"post_id": "1", "title": "a\\u0000b", "url": "/1"}'
        # Then it comes without the character
        assert read(BBS, "detail", body).items[0]["title"] == "ab"

    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            (rb"\ud83d\ude00", "\U0001f600"),
            (rb"a\ud83d", "a\ufffd"),
            (rb"\uDE00b", "\ufffdb"),
            (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
            (rb"\ud83d\n", "\ufffd\n"),
            (rb"\\ud83d \ud83d", "\\ud83d \ufffd"),
            (rb"\\\ud83d", "\\\ufffd"),
        ],
    )
    def test_half_a_surrogate_pair_is_no_reason_to_lose_a_post(self, written: bytes, meant: str) -> None:
        # Given a title that the site cut in the middle of a character
        body = b'{"post_id": "1", "title": "' + written + b'", "url": "/1"}'
        # Then it comes as any screen would show it
        assert read(BBS, "detail", body).items[0]["title"] == meant

    def test_items_share_nothing(self) -> None:
        comments = [{"comment_id": 1}, {"comment_id": 2}]
        first, second = read(BBS, "comment", {"post_id": "1", "page": 1, "pages": 1, "comments": comments}).items
        first["extra"]["seen"] = True
        assert second["extra"] == {}

    def test_a_page_of_20_comments_takes_far_less_time_than_its_download(self) -> None:
        # Given a page of 20 comments
        row = {"comment_id": "1", "author": "a", "body": "b" * 150, "published_at": "2026-01-02T03:04:05Z"}
        body = orjson.dumps({"post_id": "1", "page": 1, "pages": 1, "comments": [row] * 20})
        extractor = Extractor(BBS, "comment")
        # When it is read often
        times_s = []
        for _ in range(200):
            start_s = time.perf_counter()
            extractor.extract(body, url="http://h/", encoding=None, key="1", page=1, params={})
            times_s.append(time.perf_counter() - start_s)
        # Then the best time is within 10 times of what it takes on a quiet machine (40 µs)
        assert min(times_s) < 400e-6


class TestSpirit:
    """HTML, as Spirit 0.14 writes it."""

    LIST = """
      <div class="layout__topics">
      <div class="layout__topics__topic"><div class="topic__title">
        <a class="topic__link" href="/topic/12/%D0%BF%D1%80%D0%B8-x/">При x</a></div>
        <div class="topic__category"><a href="/category/3/news/">News</a></div>
        <div class="topic__comments"><i class="fa fa-comment"></i> 41 </div>
        <div class="topic__date" title="Sept. 3, 2025, 4:05 p.m."><i></i> 3 Sep</div></div>
      </div>
      <ul class="paginator"><li class="paginator__button"><span>1</span></li>
        <li class="paginator__button"><a href="?page=2">2</a></li>
        <li class="paginator__button"><a href="?page=7">7</a></li></ul>"""

    TOPIC = """
      <ul class="breadcrumb_nav"><li><a href="/">Main</a></li>
        <li><a href="/category/3/news/">News</a></li></ul>
      <h1 class="headline"><i class="fa fa-lock"></i>
         Über   uns </h1>
      <div class="comments_list">
        <div class="comments_list__comment js-comment" id="c1" data-number="1" data-pk="100">
          <a class="comment__info__username__link" href="/user/1/"><span>Zoë</span><i></i></a>
          <ul class="comment__info__date"><li><a>2</a></li><li title="March 3, 2025, noon">x</li></ul>
          <div class="comment__text js-comment-text"> <p>One<br>
two <strong>three</strong>.</p>
<blockquote><p>quoted</p></blockquote><pre><code>a  b
  c</code></pre></div></div>
        <div class="comments_list__comment js-comment" id="c2" data-number="2" data-pk="101">
          <a class="comment__info__username__link" href="/user/2/"><span>Bob</span></a>
          <ul class="comment__info__date"><li title="Aug. 13, 2025, 11 a.m.">x</li></ul>
          <div class="comment__text"><p>Yes <i class="tw tw-smile"></i>&amp; no</p></div></div>
        <div class="comments_list__item js-comment" id="c3" data-number="3" data-pk="102">
          <div class="comments_list__item__info"><span><a href="/user/2/">Bob</a>'s comment was removed
          <span title="Aug. 14, 2025, midnight">1 day ago</span></span></div></div>
      </div>
      <ul class="paginator"><li class="paginator__pages">Page 1 of 2</li>
        <li class="paginator__button"><a href="?page=2"><i></i></a></li></ul>"""

    URL = "http://127.0.0.1:8000/topic/12/%D0%BF%D1%80%D0%B8-x/"

    def test_topics_are_handed_down_with_their_slug(self) -> None:
        extract = read(SPIRIT, "list", self.LIST, key="all", url="http://127.0.0.1:8000/?page=1")
        active = "Sept. 3, 2025, 4:05 p.m."
        slug = "при-x"
        assert extract.handdowns == [
            Handdown("detail", "12", f"{active}|41", {"slug": slug, "count": "41", "active": active})
        ]
        assert (extract.items, extract.next_page, extract.params) == ([], 2, {})

    def test_a_category_learns_its_slug_from_the_redirect(self) -> None:
        extract = read(SPIRIT, "list", self.LIST, key="3", url="http://127.0.0.1:8000/category/3/news/")
        assert extract.params == {"slug": "news"}

    def test_an_empty_forum_is_not_an_error(self) -> None:
        body = '<div class="layout__topics"><p>There are no topics here, yet</p></div><ul class="paginator">'
        assert read(SPIRIT, "list", body, key="all").handdowns == []

    def test_a_topic_is_the_first_comment_of_its_first_page(self) -> None:
        # When a topic is read that was asked for by its id alone
        extract = read(SPIRIT, "detail", self.TOPIC, key="12", url=self.URL)
        # Then the slug was learnt from the redirect, and what only the list tells is not known
        assert extract.items == [
            {
                "type": "post",
                "source": "spirit",
                "post_id": "12",
                "forum_id": "3",
                "title": "Über uns",
                "body": "One\ntwo three.\nquoted\na  b\n  c",
                "author": "Zoë",
                "published_at": "2025-03-03T12:00:00Z",
                "views": None,
                "comment_count": None,
                "url": self.URL,
                "extra": {},
            }
        ]
        assert extract.handdowns == [Handdown("comment", "12", "", {"slug": "при-x"})]
        assert extract.next_page is None

    def test_what_the_list_told_is_used(self) -> None:
        extract = read(SPIRIT, "detail", self.TOPIC, key="12", url=self.URL, params={"count": "41", "active": "now"})
        assert extract.items[0]["comment_count"] == 40
        assert extract.handdowns[0].version == "now|41"

    def test_comments_come_without_the_topic_and_the_removed(self) -> None:
        extract = read(SPIRIT, "comment", self.TOPIC, key="12", url=self.URL)
        (comment,) = extract.items
        assert (comment["comment_id"], comment["post_id"], comment["author"]) == ("101", "12", "Bob")
        assert (comment["body"], comment["published_at"]) == ("Yes & no", "2025-08-13T11:00:00Z")
        assert (extract.next_page, extract.params) == (2, {"slug": "при-x"})

    def test_on_other_pages_the_first_row_is_a_comment(self) -> None:
        body = self.TOPIC.replace("Page 1 of 2", "Page 2 of 2").replace("?page=2", "?page=1")
        extract = read(SPIRIT, "comment", body, key="12", page=2, url=self.URL + "?page=2")
        assert [item["comment_id"] for item in extract.items] == ["100", "101"]
        assert extract.next_page is None

    @pytest.mark.parametrize(
        ("task", "body", "says"),
        [
            ({"page": 2}, TOPIC, "says that it is page 1, not 2"),
            ({"page": 2}, TOPIC.replace("Page 1 of 2", ""), "page None, not 2"),
            ({"key": "13"}, TOPIC, "says that it is '12', not '13'"),
            ({}, "<html><form>Log in</form></html>", "nothing at '.comments_list'"),
            ({}, "", "is empty"),
            ({}, "\x00", "is empty"),
            (
                {},
                TOPIC.replace("Aug. 13, 2025, 11 a.m.", "13. August 2025 11:00"),
                "published_at .* is no time",
            ),
        ],
    )
    def test_a_page_of_another_kind_is_an_error(self, task: dict[str, Any], body: str, says: str) -> None:
        with pytest.raises(ExtractionError, match=says):
            read(SPIRIT, "comment", body, **({"key": "12", "url": self.URL} | task))
