"""What the stages' spiders make of a page, and of one that is not there: where a scan ends, where a post is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from comment_collector.spider import CommentCollector
from detail_collector.spider import DetailCollector
from list_scanner.spider import ListScanner
from threadmill.crawl.collected_page import CollectedPage
from threadmill.crawl.extraction import Extract
from threadmill.crawl.extraction.extract import Handdown
from threadmill.crawl.reference import PageReference
from threadmill.crawl.settler import MARGIN, WHEN
from threadmill.crawl.spider import REFERENCE, StageSpider
from threadmill.model.source import Source, load_source
from threadmill.model.task import Task
from threadmill.store.work import Met, When

SOURCES = Path(__file__).parents[2] / "sources"
BBS = load_source(SOURCES / "bbs.toml")
SPIRIT = load_source(SOURCES / "spirit.toml")


def changed(source: Source, stage: str, **rules: Any) -> Source:
    """The source with other rules for a stage."""
    body = source.model_dump(exclude_unset=True)
    body["stages"][stage].update(rules)
    return Source.model_validate(body)


def follow_ups(spider: StageSpider, reference: PageReference, *, posts: int, last: bool = False) -> list[Any]:
    """What a page with so many posts gives: what becomes of the posts, and which page follows when."""
    handdowns = [Handdown("detail", str(n), "1", {}) for n in range(posts)]
    extract = Extract([], handdowns, None if last else reference.number + 1, posts, {})
    given = spider.collect(CollectedPage(reference, extract, spider))
    return [
        (each.meta[REFERENCE].number, each.meta.get(WHEN, When.ALWAYS), each.meta.get(MARGIN, 0))
        if isinstance(each, Request)
        else each
        for each in given
        if not isinstance(each, Task)
    ]


class TestAScan:
    def test_goes_on_from_a_page_with_news_unless_its_end_is_known(self) -> None:
        # Given a page with more posts than the margin; then it must bring something new, also among its last ten
        assert follow_ups(ListScanner(sources=[BBS]), PageReference("bbs", "7"), posts=20) == [
            Met.REMEMBER,
            (2, When.SOMETHING_NEW, 10),
        ]

    def test_goes_on_over_a_page_of_fewer_known_posts_than_the_margin(self) -> None:
        # Given pages of four posts, and a margin of ten
        spider = ListScanner(sources=[BBS])
        reference = PageReference("bbs", "7")
        stale = []
        # When they bring nothing new, one after the other
        for number in (1, 2, 3):
            extract = Extract([], [Handdown("detail", str(n), "1", {}) for n in range(4)], number + 1, 4, {})
            pages = list(CollectedPage(reference, extract, spider).next_page_unless_known(10))
            stale.append([page.meta[REFERENCE].stale for page in pages])
            reference = pages[-1].meta[REFERENCE]
        # Then the known posts are counted over the pages, and after the third page there are enough
        assert stale == [[0, 4], [0, 8], [0]]

    @pytest.mark.parametrize("number", [1, 9])
    def test_ends_somewhere_if_pages_hand_nothing_down(self, number: int) -> None:
        spider = ListScanner(sources=[BBS])
        pages = follow_ups(spider, PageReference("bbs", "7", number, stale=number - 1), posts=0)
        assert [when for _, when, _ in pages[1:]] == [When.SOMETHING_NEW, When.NOTHING_NEW]
        assert len(follow_ups(spider, PageReference("bbs", "7", 10, stale=9), posts=0)) == 2

    def test_of_the_whole_board_goes_to_its_end_and_compares(self) -> None:
        spider = ListScanner(sources=[BBS])
        assert follow_ups(spider, PageReference("bbs", "7", full=True), posts=20) == [
            Met.COMPARE,
            (2, When.ALWAYS, 0),
        ]
        assert follow_ups(spider, PageReference("bbs", "7", 2, full=True), posts=3, last=True) == [Met.COMPARE]

    def test_that_was_cut_short_compares_nothing(self) -> None:
        # Given a source whose scans end after three pages, however long the board is
        paging = {"kind": "count", "pages": "pages", "max_pages": 3}
        spider = ListScanner(sources=[changed(BBS, "list", paging=paging)])
        # When a whole scan comes to the third; then nobody can say which posts have left the board
        assert follow_ups(spider, PageReference("bbs", "7", 3, full=True), posts=20, last=True) == [Met.REMEMBER]

    def test_says_nothing_of_its_posts_if_nobody_wants_to_know(self) -> None:
        spider = ListScanner(sources=[changed(BBS, "list", notice_deletions=False)])
        assert follow_ups(spider, PageReference("bbs", "7", full=True), posts=3, last=True) == []

    def test_carries_on_as_a_whole_scan_through_redis(self) -> None:
        (request,) = ListScanner(sources=[BBS]).requests_for(Task("list", "bbs", "7", full=True))
        reference = request.meta[REFERENCE].following(2, {}, stale=3)
        assert PageReference.load(reference.dump(), "bbs") == reference
        assert reference.full


class TestResuming:
    @pytest.mark.parametrize(
        ("known", "version", "page"),
        [
            ("", "50", 1),
            ("5", "50", 1),
            ("19", "50", 1),
            ("20", "50", 2),
            ("45", "50", 3),
            ("50", "50", 1),
            ("50", "45", 1),
            ("45", "", 1),
            ("many", "50", 1),
            ("45", "-50", 1),
            ("²", "50", 1),
        ],
    )
    def test_begins_at_the_page_of_the_last_known_comment(self, known: str, version: str, page: int) -> None:
        # Given twenty comments a page
        task = Task("comment", "bbs", "42", known=known, version=version)
        (request,) = CommentCollector(sources=[BBS]).requests_for(task)
        assert request.url.endswith(f"/BBS/comment/42/{page}")

    def test_begins_at_the_first_page_if_that_was_asked_for(self) -> None:
        task = Task("comment", "bbs", "42", known="45", version="50", force=True)
        (request,) = CommentCollector(sources=[BBS]).requests_for(task)
        assert request.url.endswith("/BBS/comment/42/1")

    def test_looks_again_at_as_many_as_the_source_says(self) -> None:
        source = changed(BBS, "comment", resume={"per_page": 20, "overlap": 6})
        task = Task("comment", "bbs", "42", known="45", version="50")
        (request,) = CommentCollector(sources=[source]).requests_for(task)
        assert request.url.endswith("/BBS/comment/42/2")

    def test_reads_the_part_of_the_version_that_counts(self) -> None:
        # Given Spirit, whose version is a time and a count
        moved = {"known": "March 3, 2025, noon|41", "version": "March 4, 2025, noon|50"}
        spider = CommentCollector(sources=[SPIRIT])
        (request,) = spider.requests_for(Task("comment", "spirit", "42", params={"slug": "a"}, **moved))
        assert request.url.endswith("/topic/42/a/?page=3")

    def test_begins_at_the_first_page_if_the_task_can_name_no_other(self) -> None:
        # Given a site whose later pages want a parameter that the task does not bring
        urls = [{"template": "/topic/{key}/{slug}/?page={page}"}, {"template": "/topic/{key}/"}]
        spider = CommentCollector(sources=[changed(SPIRIT, "comment", url=urls)])
        (request,) = spider.requests_for(Task("comment", "spirit", "42", known="|41", version="|50"))
        assert request.url.endswith("/topic/42/")

    @pytest.mark.parametrize(("rows", "again"), [(10, False), (11, False), (9, True)])
    def test_begins_again_if_the_site_s_pages_are_larger_than_said(self, rows: int, again: bool) -> None:
        # Given a post of 50 comments of which 45 were known, and the third page, which should be the last with ten
        spider = CommentCollector(sources=[BBS])
        (request,) = spider.requests_for(Task("comment", "bbs", "42", known="45", version="50"))
        # When it has fewer rows; then comments stand on pages that were passed over: all are collected
        page = CollectedPage(request.meta[REFERENCE], Extract([], [], None, rows, {}), spider)
        assert [each.meta[REFERENCE].number for each in page.next_page()] == ([1] if again else [])
        # And the pages from there on know nothing of it
        assert all(each.meta[REFERENCE].expected == 0 for each in page.next_page())


class TestAnAbsentPage:
    def test_the_first_page_of_a_post_means_that_it_is_gone(self) -> None:
        for spider in (DetailCollector(sources=[BBS]), CommentCollector(sources=[BBS])):
            absence = spider.absence(spider.request(PageReference("bbs", "42")))
            assert absence.gone
            assert list(absence.items) == [{"type": "gone", "source": "bbs", "post_id": "42"}]

    def test_a_later_page_ends_the_pages_and_no_more(self) -> None:
        spider = CommentCollector(sources=[BBS])
        absence = spider.absence(spider.request(PageReference("bbs", "42", 2)))
        assert (absence.gone, list(absence.items), absence.met, absence.instead) == (False, [], Met.NO, None)

    def test_where_pages_end_so_the_first_one_means_nothing_either(self) -> None:
        spider = CommentCollector(sources=[changed(BBS, "comment", paging={"kind": "until_empty"})])
        assert not spider.absence(spider.request(PageReference("bbs", "42"))).gone

    def test_the_page_a_post_is_resumed_at_says_nothing_before_the_first_was_asked(self) -> None:
        spider = CommentCollector(sources=[BBS])
        (request,) = spider.requests_for(Task("comment", "bbs", "42", known="45", version="50"))
        absence = spider.absence(request)
        assert absence.instead is not None
        assert absence.instead.url.endswith("/BBS/comment/42/1")
        assert not absence.gone
        # And when that is not there either, the post is gone
        assert spider.absence(absence.instead).gone

    def test_a_board_s_end_completes_its_scan_and_its_beginning_does_not(self) -> None:
        spider = ListScanner(sources=[BBS])
        later, first = (spider.request(PageReference("bbs", "7", number, full=True)) for number in (4, 1))
        assert spider.absence(later).met is Met.COMPARE
        absence = spider.absence(first)
        assert (absence.gone, list(absence.items), absence.met) == (True, [], Met.NO)
