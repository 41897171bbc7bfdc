"""Fills Spirit through its own models, the same from the same seed. Runs in Spirit's environment.

What a collector may get wrong is in it: topics of 1 to 14 pages and the edges between pages, removed comments
(first ones too), removed and private topics, moderators' notes, edited comments, pinned topics, every month
of a year, noon and midnight. Everything goes into the folder $SPIRIT_DATA.
"""

# ruff: noqa: E402 - Django is set up before its models are imported
import os
import sys
from datetime import UTC, datetime, timedelta
from random import Random

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

import django

django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import transaction
from spirit.category.models import Category
from spirit.comment.models import Comment
from spirit.core.conf import settings
from spirit.core.utils.markdown import Markdown
from spirit.topic.models import Topic
from texts import NICKNAMES, text, title

SEED = 20_26
TOPICS = 240
FIRST_DAY = datetime(2023, 1, 1, tzinfo=UTC)
# Comments besides the topic's own text: around the edges of pages of 20, and many. Other topics have 0 to 25.
SIZES = (0, 1, 18, 19, 20, 21, 38, 39, 40, 41, 59, 60, 99, 100, 101, 120, 139, 150, 180, 199, 200, 219, 260)


def users(random: Random) -> list:
    made = []
    for number, nickname in enumerate(NICKNAMES):
        user = get_user_model().objects.create(username=nickname if nickname in ("anna", "bob") else f"user{number}")
        user.st.nickname = nickname
        user.st.is_administrator = number == 0
        user.st.is_moderator = number < 3
        user.st.save()
        made.append(user)
    return made


def categories() -> list[Category]:
    named = [Category.objects.create(title=title) for title in ("News & more", "Погода", "日本語", "!!!", "Old news")]
    named.append(Category.objects.create(title="Wetter heute", parent=named[1]))
    return named


def dates(random: Random, topic: int, count: int) -> list[datetime]:
    """Times of a topic's comments, no two alike: their order is that of the pages."""
    at = FIRST_DAY + timedelta(hours=random.choice((0, 12, 5, 17)), days=3 * topic)
    steps = (7, 60, 61, 1800, 3600, 43_200, 86_399)
    made = []
    for _ in range(count):
        made.append(at + timedelta(microseconds=random.choice((0, 1, 999_999))))
        at += timedelta(seconds=random.choice(steps))
    return made


def comments(random: Random, topic: Topic, authors: list, times: list[datetime]) -> list[Comment]:
    made = []
    for number, date in enumerate(times):
        markdown = text(random)
        made.append(
            Comment(
                topic=topic,
                user=topic.user if number == 0 else random.choice(authors),
                comment=markdown,
                comment_html=Markdown().render(markdown),
                date=date,
                is_removed=number > 0 and random.random() < 0.04,
                modified_count=random.choice((0, 0, 0, 0, 1, 12)),
            )
        )
    return made


def note(topic: Topic, user: object, action: int, date: datetime) -> Comment:
    """A note of a moderator, as `Comment.create_moderation_action` makes it."""
    return Comment(topic=topic, user=user, action=action, comment="action", comment_html="action", date=date)


def seed_topic(random: Random, number: int, authors: list, places: list[Category]) -> None:
    size = SIZES[number] if number < len(SIZES) else random.choice((0, 0, 1, 2, 3, 5, 8, 13, 19, 20, 25))
    times = dates(random, number, size + 1)
    topic = Topic.objects.create(
        user=random.choice(authors),
        category=random.choice(places),
        title=title(random, number),
        date=times[0],
        last_active=times[-1],
        comment_count=len(times),
        is_closed=number % 29 == 0,
        is_pinned=number % 31 == 0,
        is_globally_pinned=number in (50, 51),
        is_removed=number % 47 == 46,
    )
    made = comments(random, topic, authors, times)
    if number % 37 == 36:  # the topic's own text was removed
        made[0].is_removed = True
    if number == 45:  # and here everything was
        for comment in made:
            comment.is_removed = True
    if topic.is_closed:
        made.append(note(topic, authors[1], Comment.CLOSED, times[-1] + timedelta(minutes=1)))
    if topic.is_pinned:
        made.append(note(topic, authors[1], Comment.PINNED, times[-1] + timedelta(minutes=2)))
    Comment.objects.bulk_create(made)


@transaction.atomic
def seed() -> None:
    random = Random(SEED)
    authors = users(random)
    places = categories()
    for number in range(TOPICS):
        seed_topic(random, number, authors, places)
    private = Category.objects.get(pk=settings.ST_TOPIC_PRIVATE_CATEGORY_PK)
    removed = Category.objects.create(title="Removed", is_removed=True)
    for number in range(TOPICS, TOPICS + 4):
        seed_topic(random, number, authors, [private if number % 2 else removed])


call_command("migrate", verbosity=0)
seed()
sys.stdout.write(f"{Topic.objects.count()} topics, {Comment.objects.count()} comments\n")
