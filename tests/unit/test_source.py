"""Sources: what a definition may say, and that no task can turn one against another host or path."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from threadmill.model.errors import SourceError, TaskError
from threadmill.model.source import Source, load_source
from threadmill.model.source.paging import Count, NextLink, Single, UntilEmpty
from threadmill.model.source.template import UrlTemplate

SOURCES = Path(__file__).parents[2] / "sources"
STAGE = '[stages.list]\nurl = "/{key}"\nformat = "json"\nrows = "r"\n'
HOSTILE = [
    "../../x",
    "1/../2",
    "..",
    ".",
    "...",
    "%2e%2e",
    "http://evil",
    "//evil/x",
    "\\\\evil",
    "1\\..\\2",
    "1?x=1",
    "1#x",
    "@evil",
    "\uff11\uff12",
    "12\x00",
    "12\n",
    "12\r\nHost: evil",
    "\u2028",
    "",
    " ",
    "9" * 100_000,
]


def described(**stage: object) -> dict[str, object]:
    """A source with one stage that is right but for what a test changes."""
    rules = {"url": "/p/{key}", "format": "json", "rows": "rows"} | stage
    return {"name": "site", "base_url": "https://bbs.example.com", "stages": {"list": rules}}


def written(folder: Path, text: str) -> Path:
    file = folder / "site.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", sorted(file.stem for file in SOURCES.glob("*.toml")))
def test_every_source_of_the_repository_loads_by_name(name: str) -> None:
    # When a source of the repository is loaded by its name
    source = load_source(name, search=[SOURCES])
    # Then it has the three stages
    assert source.name == name
    assert {"list", "detail", "comment"} <= source.stages.keys()


class TestTheFile:
    def test_a_source_loads_by_path_and_cannot_be_changed(self, tmp_path: Path) -> None:
        # Given a file with the least a source needs
        file = written(
            tmp_path,
            'name = "site"\nbase_url = "https://bbs.example.com/"\n' + STAGE,
        )
        # When it is loaded
        source = load_source(file)
        # Then what it leaves out has the safe defaults, and nothing can be set
        assert source.base_url == "https://bbs.example.com"
        assert source.hosts == ("bbs.example.com",)
        assert source.obey_robots
        assert source.rate is None
        with pytest.raises(ValueError, match="frozen"):
            source.rate = 5.0

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("name = ", "is not TOML"),
            ('name = "site"', r"base_url: the key is missing"),
            (
                'name = "Site"\nbase_url = "https://x"\n' + STAGE,
                "name",
            ),
            (
                'colour = "red"\nname = "site"\nbase_url = "https://x"\n' + STAGE,
                "colour: there is no such key",
            ),
            (
                'name="site"\nbase_url="https://x"\n' + STAGE + "pagign = 1",
                r"stages\.list\.pagign: there is no such key",
            ),
        ],
    )
    def test_a_mistake_is_said_with_file_key_and_remedy(self, tmp_path: Path, text: str, says: str) -> None:
        # Given a file with a mistake
        file = written(tmp_path, text)
        # When it is loaded, then the error names file and key
        with pytest.raises(SourceError, match=says) as error:
            load_source(str(file))
        assert str(file) in str(error.value)

    def test_an_unknown_name_says_where_it_was_looked_for(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=re.escape(str(tmp_path / "nowhere.toml"))):
            load_source("nowhere", search=[tmp_path])

    def test_a_missing_file_is_a_source_error(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match="cannot be read"):
            load_source(tmp_path / "gone.toml")

    def test_a_name_that_differs_from_its_file_is_refused(self, tmp_path: Path) -> None:
        # Given sources/site.toml whose name is another source's
        written(
            tmp_path,
            'name = "other"\nbase_url = "https://x"\n' + STAGE,
        )
        # When it is loaded by name, then nobody gets a source he did not ask for
        with pytest.raises(SourceError, match="'other'"):
            load_source("site", search=[tmp_path])


class TestHosts:
    def test_at_moves_a_source_and_its_hosts(self) -> None:
        # Given a source with two hosts
        source = Source.model_validate(described() | {"hosts": ["bbs.example.com", "img.example.com"]})
        # When it is put at another address
        moved = source.at("http://127.0.0.1:8123/")
        # Then that is the one host it may ask, and the original is as it was
        assert (moved.base_url, moved.hosts) == ("http://127.0.0.1:8123", ("127.0.0.1:8123",))
        assert source.hosts == ("bbs.example.com", "img.example.com")

    @pytest.mark.parametrize(
        "base_url",
        ["ftp://x", "x", "http://", "http://u:p@x", "http://x?y", "http://x#y", "http://x y", "http://x\\y"],
    )
    def test_a_base_url_is_scheme_host_and_path(self, base_url: str) -> None:
        with pytest.raises(SourceError, match="no base URL"):
            Source.model_validate(described()).at(base_url)

    @pytest.mark.parametrize(
        ("url", "allowed"),
        [
            ("https://bbs.example.com/1", True),
            ("https://BBS.example.com:443/1", True),
            ("http://bbs.example.com/1", True),
            ("https://bbs.example.com:8443/1", False),
            ("https://evil.example.com/1", False),
            ("https://bbs.example.com@evil/1", False),
            ("https://evil\\@bbs.example.com/1", False),
            ("https://bbs.example.com.evil/1", False),
            ("file:///etc/passwd", False),
            ("//evil/1", False),
            ("http://[::1", False),
        ],
    )
    def test_only_its_own_hosts_are_allowed(self, url: str, allowed: bool) -> None:
        assert Source.model_validate(described()).allows(url) is allowed


class TestUrls:
    @pytest.mark.parametrize("key", HOSTILE)
    @pytest.mark.parametrize("source", ["bbs", "spirit"])
    def test_a_hostile_key_is_refused_by_every_stage(self, source: str, key: str) -> None:
        # Given a source of the repository, when a task's key is hostile, then no stage makes a URL of it
        for rules in load_source(source, search=[SOURCES]).stages.values():
            with pytest.raises(TaskError) as error:
                rules.path(key, 1, {"slug": "s"})
            assert error.value.reason == "refused-key"

    @pytest.mark.parametrize("value", HOSTILE)
    @pytest.mark.parametrize("template", ["/a/{key}/b", "/a/x-{key}", "/a?k={key}&p={page}", "/{key}/{slug}/?p=1"])
    def test_no_value_leaves_its_place_even_if_the_pattern_lets_it(self, template: str, value: str) -> None:
        # Given a source whose patterns refuse nothing
        rules = Source.model_validate(described(url=template, key_pattern=r"(?s).*", params={"slug": r"(?s).*"})).rules(
            "list"
        )
        # When a hostile value is the key and the parameter
        try:
            path = rules.path(value, 1, {"slug": value})
        except TaskError:
            return
        # Then the URL has the template's shape: as many segments and query values, and nothing to collapse
        parts, expected = (
            urlsplit("http://host" + path),
            urlsplit("http://host" + re.sub(r"\{.*?\}", "v", template)),
        )
        assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "host", "")
        assert path.isascii() and path.isprintable()
        assert parts.path.count("/") == expected.path.count("/")
        assert parts.query.count("&") == expected.query.count("&")
        assert not {".", ".."} & set(unquote(parts.path).split("/"))

    def test_values_are_percent_encoded(self) -> None:
        template = UrlTemplate.parse("/topic/{key}/{slug}/?page={page}")
        assert template.fill("7", 2, {"slug": "приве т&x=1"}) == (
            "/topic/7/%D0%BF%D1%80%D0%B8%D0%B2%D0%B5%20%D1%82%26x%3D1/?page=2"
        )

    @pytest.mark.parametrize(
        "template", ["p/{key}", "//evil/{key}", "http://evil/{key}", "/{key", "/a b/{key}", "/{Key}"]
    )
    def test_a_template_that_could_name_a_host_is_no_template(self, template: str) -> None:
        with pytest.raises(ValueError, match="the url"):
            Source.model_validate(described(url=template))

    def test_the_first_address_that_fits_is_taken(self) -> None:
        # Given Spirit's list, whose address depends on the key and on whether the slug is known
        rules = load_source("spirit", search=[SOURCES]).rules("list")
        # Then
        assert rules.path("all", 3, {}) == "/?page=3"
        assert rules.path("5", 2, {"slug": "news"}) == "/category/5/news/?page=2"
        assert rules.path("5", 1, {}) == "/category/5/?page=1"

    def test_an_address_without_page_serves_the_first_page_only(self) -> None:
        with pytest.raises(TaskError, match="none of the source's urls fits"):
            Source.model_validate(described()).rules("list").path("1", 2, {})

    def test_a_parameter_is_checked_and_has_a_default(self) -> None:
        # Given a stage with one parameter that has a default
        params = {"order": {"pattern": "new|old", "default": "new"}}
        rules = Source.model_validate(described(url="/{key}?o={order}", params=params)).rules("list")
        # Then a task may leave it out, choose, and bring others, but not anything
        assert rules.path("1", 1, {}) == "/1?o=new"
        assert rules.path("1", 1, {"order": "old", "unknown": "x"}) == "/1?o=old"
        with pytest.raises(TaskError) as error:
            rules.path("1", 1, {"order": "newer"})
        assert error.value.reason == "refused-param"


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ({"url": "/{key}/{slug}"}, "declare slug in params"),
        ({"learn": {"slug": {"task": "url"}}}, "declare slug in params"),
        ({"item": "comment"}, "fields.comment_id"),
        ({"item": "post", "fields": {"colour": "c"}}, "no field colour"),
        ({"fields": {"title": "t"}}, "say which"),
        ({"rows": None}, "give expect or identity"),
        ({"format": "html"}, "give expect"),
        ({"key_pattern": "("}, "not a regular expression"),
        ({"item": "post", "fields": {"title": {"at": "a", "page": "b"}}}, "exactly one of"),
        (
            {"item": "post", "fields": {"title": {"at": "a", "convert": ["int", "join"]}}},
            "join must be the first",
        ),
        ({"item": "post", "fields": {"title": {"at": "a", "convert": ["upper"]}}}, "upper"),
        ({"paging": {"kind": "count", "total": "t"}}, "total and per_page"),
        ({"submit": [{"stage": "detail", "key": "id"}]}, "no stage of it"),
        ({"margin": 0}, "margin"),
        ({"notice_deletions": True}, "notice_deletions needs submit"),
        ({"resume": {"per_page": 20}}, "resume needs rows and pages"),
        (
            {
                "paging": {"kind": "until_empty"},
                "resume": {"per_page": 20, "part": 2},
                "submit": [{"stage": "list", "key": "id", "version": "n"}],
            },
            "reads field 2 of it",
        ),
        ({"submit": [{"stage": "list", "key": "id", "params": {"x": "y"}}]}, "hands x to list"),
        (
            {"submit": [{"stage": "list", "key": "id", "when": {"at": "n", "exists": True, "equals": 1}}]},
            "at most one",
        ),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_loaded(stage: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Source.model_validate(described(**stage))


class TestPaging:
    def test_single_has_no_other_page(self) -> None:
        assert Single().after(1, 20, []) is None

    def test_until_empty_ends_at_a_page_without_rows(self) -> None:
        paging = UntilEmpty(kind="until_empty")
        assert [paging.after(1, 20, []), paging.after(2, 0, [])] == [2, None]

    def test_count_of_pages(self) -> None:
        paging = Count(kind="count", pages="pages")
        assert [paging.after(page, 1, [3]) for page in (1, 2, 3, 4)] == [2, 3, None, None]
        assert paging.after(1, 1, ["Page 1 of 12"]) is None  # the first number counts, so say which by the expression

    def test_count_of_rows(self) -> None:
        paging = Count(kind="count", total="n", per_page=20, first_page=0)
        assert [paging.after(page, 1, [41]) for page in (0, 1, 2)] == [1, 2, None]

    def test_a_count_that_is_not_there_is_an_error_unless_one_is_assumed(self) -> None:
        with pytest.raises(ValueError, match="assume"):
            Count(kind="count", pages="pages").after(1, 1, [])
        assert Count(kind="count", pages="pages", assume=1).after(1, 1, []) is None

    def test_next_link_takes_the_smallest_number_above_its_own(self) -> None:
        paging = NextLink(kind="next_link", links="a", pattern="page=([0-9]+)")
        assert paging.after(2, 1, ["?page=1", "?page=9", "?page=3", "?sort=7"]) == 3
        assert paging.after(9, 1, ["?page=1", "?page=8"]) is None

    def test_max_pages_ends_what_has_no_end(self) -> None:
        paging = UntilEmpty(kind="until_empty", max_pages=2)
        assert [paging.after(1, 20, []), paging.after(2, 20, [])] == [2, None]
