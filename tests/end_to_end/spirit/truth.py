"""What a visitor of Spirit can see, straight from its database: no page, no Django, nothing of Threadmill."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

_VISIBLE_TOPICS = """
SELECT topic.id, topic.category_id, topic.title, topic.date, topic.comment_count, profile.nickname
FROM spirit_topic_topic AS topic
JOIN spirit_category_category AS category ON category.id = topic.category_id
LEFT JOIN spirit_category_category AS parent ON parent.id = category.parent_id
JOIN spirit_user_userprofile AS profile ON profile.user_id = topic.user_id
WHERE NOT topic.is_removed AND NOT category.is_removed AND NOT category.is_private AND category.is_global
  AND NOT coalesce(parent.is_removed, 0)
"""

_COMMENTS = """
SELECT comment.id, comment.topic_id, comment.comment_html, comment.date, comment.is_removed OR comment.action,
       profile.nickname
FROM spirit_comment_comment AS comment
JOIN spirit_user_userprofile AS profile ON profile.user_id = comment.user_id
ORDER BY comment.topic_id, comment.date
"""


@dataclass(frozen=True, slots=True)
class Truth:
    """Rows by id. Times are to the minute, as Spirit shows them; white space is normalised."""

    posts: dict[str, dict[str, object]]
    comments: dict[str, dict[str, object]]


def read_truth(database: Path) -> Truth:
    """All topics on Spirit's front page and their comments: those that are not removed.

    A topic's text is its first comment; where that was removed, the topic is shown without text.
    """
    posts: dict[str, dict[str, object]] = {}
    comments: dict[str, dict[str, object]] = {}
    with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        for topic, category, title, date, count, nickname in connection.execute(_VISIBLE_TOPICS):
            posts[str(topic)] = {
                "forum_id": str(category),
                "title": normal(title),
                "author": normal(nickname),
                "published_at": minute(date),
                "comment_count": count - 1,
            }
        for comment, topic, markup, date, hidden, nickname in connection.execute(_COMMENTS):
            post = posts.get(str(topic))
            if post is None:
                continue
            body = None if hidden else text_of(markup)
            if "body" not in post:
                post["body"] = body
            elif not hidden:
                comments[str(comment)] = {
                    "post_id": str(topic),
                    "parent_id": None,
                    "author": normal(nickname),
                    "body": body,
                    "published_at": minute(date),
                }
    return Truth(posts, comments)


def minute(date: str | None) -> str | None:
    """`2025-03-03 12:00:31` or `2025-03-03T12:00:00Z` to the minute: `2025-03-03 12:00`."""
    return date and date[:16].replace("T", " ")


def normal(text: str | None) -> str | None:
    """Text with its white space collapsed; None for none."""
    return " ".join(text.split()) or None if text is not None else None


def text_of(markup: str) -> str | None:
    """The readable text of rendered Markdown, white space collapsed."""
    parser = _Text()
    parser.feed(markup)
    parser.close()
    return normal("".join(parser.pieces))


class _Text(HTMLParser):
    """Collects text; what stands on a line of its own is set apart."""

    _APART = frozenset(("p", "br", "li", "ul", "ol", "pre", "blockquote", "h2", "table", "tr", "th", "td", "hr", "div"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._APART:
            self.pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._APART:
            self.pieces.append(" ")
