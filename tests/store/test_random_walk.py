"""Thousands of random verbs by several workers on three stages; after every one, every book must be true.

Workers die, wake up too late, lose replies, and say again what they said before; leases expire at once; tasks arrive
that are none; scripts and groups vanish. At the end, whatever happened, the work can be finished: nothing is lost, and
nothing was done twice.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import redis

from store.census import audit
from threadmill.model.errors import TaskError
from threadmill.model.keys import GROUP, Lane
from threadmill.model.stages import STAGES
from threadmill.model.task import Task
from threadmill.store.calls import Call, run
from threadmill.store.filters import BloomFilter, Dupefilter, ExactFilter, RunFilter, WindowFilter, fingerprint
from threadmill.store.jobs import announce, prioritize
from threadmill.store.letters import DeadLetter, Death, written
from threadmill.store.orders import FIFO, LIFO, PRIORITY, QueueOrder
from threadmill.store.pieces import Place
from threadmill.store.portions import portions
from threadmill.store.purge import purge
from threadmill.store.restore import Parked, Waiting, restore_letters, restore_requests, restore_tasks
from threadmill.store.stage import StageStore
from threadmill.store.status import items_waiting, job_books
from threadmill.store.streams import NEW, PENDING, TaskStreams
from threadmill.store.work import Admission, Child, Delay, Entry, Leased, PageCommit, Park, Record, Refusal, When

WORKERS = ("w1", "w2", "w3")
JOBS = ("", "j1", "j2")
LONG_MS = 3_600_000
FOREIGN: tuple[dict[str, bytes], ...] = (
    {"task": b'{"key":"42"}'},
    {"task": b'{"key":43,"job":"j1","priority":7}'},
    {"task": b"{not JSON"},
    {"task": b'{"key":"1","v":99}'},
    {"task": b'{"key":"1","stage":"nowhere"}'},
    {"task": b'{"key":"1","source":"elsewhere"}'},
    {"task": b"\x00\x1f\xff"},
    {"whatever": b"x"},
    {"k": b"1", "x": b"{"},
)

Handler = Callable[[Any], None]

DONE_ONCE: dict[str, Callable[[Any], bool]] = {
    "submit": lambda answer: tuple(answer) == (-1, 0),
    "commit": lambda answer: not any(page.ok for page in answer),
    "delay": lambda answer: not any(answer),
    "park": lambda answer: not any(answer),
    "release": lambda answer: answer == 0,
    "replay": lambda answer: answer == 0,
    "purge": lambda answer: answer == 0,
    "restore_tasks": lambda answer: answer == -1,
    "restore_requests": lambda answer: answer == -1,
    "restore_letters": lambda answer: answer == -1,
}
"""What a call answers when it is said again. (admit and refuse may be done late: when a lost group was made again.)"""


class Walk:
    """The workers, what each believes, and a ledger of what Redis said was done."""

    def __init__(self, client: redis.Redis, seed: int, order: QueueOrder, dupefilter: Dupefilter) -> None:
        self.client = client
        self.rng = random.Random(seed)
        self.lane = Lane("bbs")
        self.stages = {
            name: StageStore(self.lane, stage, order=order, request_filter=dupefilter) for name, stage in STAGES.items()
        }
        self.numbers = itertools.count(1)
        self.entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        """What each worker of a stage has read and not admitted."""
        self.held: dict[tuple[str, str], dict[str, bytes]] = defaultdict(dict)
        """What each worker believes to hold: lease id → payload."""
        self.lost: list[tuple[tuple[str, str], Call[Leased]]] = []
        """Leases whose reply never came; their worker will ask again."""
        self.said: deque[tuple[Call[Any], Handler]] = deque(maxlen=80)
        self.accepted: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.committed: Counter[bytes] = Counter()
        self.items: list[int] = []
        self.order = order
        self.finished: set[str] = set()
        """Jobs whose books say that they are finished."""
        self.finishes = 0
        self.steps: Counter[str] = Counter()

    # Saying things ----------------------------------------------------------------------------------------------------

    def say(self, call: Call[Any], heard: Handler) -> None:
        self.said.append((call, heard))
        heard(self.do(call))

    def say_again(self) -> None:
        """What was done once is not done again, however much has happened since."""
        if self.said:
            call, heard = self.rng.choice(self.said)
            answer = self.do(call)
            if call.script.name in DONE_ONCE:
                assert DONE_ONCE[call.script.name](answer), f"{call.script.name} answered {answer} the second time"
            heard(answer)

    def do(self, call: Call[Any]) -> Any:
        """Run a call, and see which jobs it finished: each at most once."""
        answer = run(self.client, call)
        finished = {job for job in JOBS[1:] if self.client.hexists(self.lane.job(job), "finished_at")}
        self.finishes += len(finished - self.finished)
        self.finished = finished
        return answer

    def check(self) -> None:
        books = audit(self.client, self.lane, JOBS[1:])
        for stage, book in books.items():
            assert book.accepted == self.accepted[stage], f"accepted in {stage}"
            assert book.done == self.done[stage], f"done in {stage}"
        assert items_waiting(self.client, [self.lane]) == len(self.items)
        assert self.client.xlen(self.lane.events) == self.finishes, "an event each time a job is finished"

    def somebody(self) -> tuple[str, str]:
        """A stage and one of its workers."""
        return self.rng.choice(list(STAGES)), self.rng.choice(WORKERS)

    def payload(self) -> bytes:
        return b"%d" % next(self.numbers)

    # Steps ------------------------------------------------------------------------------------------------------------

    def submit(self) -> None:
        stage, rng = self.rng.choice(list(STAGES)), self.rng
        tasks = [self.task(stage) for _ in range(rng.randint(1, 4))]
        token = f"t{next(self.numbers)}"
        call = self.stages[stage].submit(tasks, token=token, job=rng.choice(JOBS), express=rng.random() < 0.2)
        self.say(call, lambda answer: self.accepted.update({stage: max(0, answer[0])}))

    def task(self, stage: str) -> Task:
        rng = self.rng
        return Task(stage, "bbs", str(rng.randrange(40)), version=str(rng.randrange(3)), force=rng.random() < 0.1)

    def push_from_outside(self) -> None:
        stage = self.rng.choice(list(STAGES))
        keys = self.stages[stage].keys
        fields: Any = self.rng.choice(FOREIGN)
        self.client.xadd(keys.express if self.rng.random() < 0.2 else keys.tasks, fields)
        self.accepted[stage] += 1

    def read(self) -> None:
        stage, worker = self.somebody()
        streams = TaskStreams(self.client, self.stages[stage].keys, worker)
        how = self.rng.random()
        if how < 0.15:
            entries = streams.claim(0)
        else:
            entries = streams.read(self.rng.randint(1, 6), start=PENDING if how < 0.3 else NEW)
        self.entries[stage, worker] += [entry for entry in entries if entry not in self.entries[stage, worker]]

    def admit(self) -> None:
        stage, worker = self.somebody()
        entries, self.entries[stage, worker] = self.entries[stage, worker], []
        if self.rng.random() < 0.05:
            return  # the worker died
        for express in (True, False):
            self.take_in(stage, [entry for entry in entries if entry.express == express], express=express)

    def take_in(self, stage: str, entries: list[Entry], *, express: bool, roots: int | None = None) -> None:
        admissions, refusals = [], []
        for entry in entries:
            try:
                task = Task.from_fields(entry.fields, source="bbs", stage=stage, entry_id=entry.id)
                if roots is None and self.rng.random() < 0.1:
                    raise TaskError("malformed", "the source's pattern refuses it")
            except TaskError as error:
                refusals.append(Refusal(entry, error.reason, str(error)))
            else:
                n = self.rng.choice([0, 1, 1, 1, 2, 3]) if roots is None else roots
                priority = self.rng.randint(-3, 3) + (1_000_000 if express else 0)
                admissions.append(Admission(entry, task.job, [(priority, self.payload()) for _ in range(n)]))
        sizes = [len(admission.roots) for admission in admissions]

        def admitted(answer: list[int]) -> None:
            for one, size in zip(answer, sizes, strict=True):
                self.accepted[stage] += one * max(0, size - 1)
                self.done[stage] += one * (size == 0)

        store = self.stages[stage]
        if admissions:
            self.say(store.admit(admissions, express=express), admitted)
        if refusals:
            self.say(store.refuse(refusals, express=express), lambda _: None)

    def lease(self) -> None:
        who = stage, _ = self.somebody()
        rng = self.rng
        call = self.stages[stage].lease(
            rng.randint(0, 4),
            worker=f"l{next(self.numbers)}",
            number=1,
            ttl_ms=rng.choice([0, 1, LONG_MS, LONG_MS]),
            interval_us=rng.choice([0, 0, 1, 500]),
        )
        leased = run(self.client, call)
        if rng.random() < 0.1:
            self.lost.append((who, call))
            return
        self.believe(who, leased)
        if leased.leases and rng.random() < 0.2:
            # The same call again, after some of its leases have been settled: what is left, and no others.
            self.settle_some(who)
            left = {lease.id for lease in leased.leases if self.still_leased(stage, lease.id)}
            if left:
                assert {lease.id for lease in run(self.client, call).leases} == left

    def still_leased(self, stage: str, lease_id: str) -> bool:
        return bool(self.client.hexists(self.stages[stage].keys.leased, lease_id))

    def lease_again(self) -> None:
        if self.lost:
            who, call = self.lost.pop(self.rng.randrange(len(self.lost)))
            self.believe(who, run(self.client, call))

    def believe(self, who: tuple[str, str], leased: Leased) -> None:
        for lease in leased.leases:
            self.held[who][lease.id] = lease.record.payload

    def some_held(self, who: tuple[str, str]) -> list[str]:
        """Some leases a worker believes to hold; it may go on believing so when they are settled."""
        held = self.held[who]
        some = self.rng.sample(sorted(held), min(len(held), self.rng.randint(1, 4)))
        if self.rng.random() < 0.85:
            for lease_id in some:
                del held[lease_id]
        return some

    def commit(self) -> None:
        self.settle_some(self.somebody())

    def settle_some(self, who: tuple[str, str]) -> None:
        stage, _ = who
        payloads = dict(self.held[who])
        some = self.some_held(who)
        pages = [self.page(stage, lease_id) for lease_id in some]
        target = next(iter(STAGES[stage].hands_to), "")

        def committed(answer: list[Any]) -> None:
            for page, lease_id, one in zip(pages, some, answer, strict=True):
                if one.ok:
                    self.done[stage] += 1
                    self.committed[payloads[lease_id]] += 1
                    self.items += [orjson.loads(item)["n"] for item in page.items]
                    assert one.queued + one.submitted + one.filtered <= len(page.children) + len(page.subtasks)
                else:
                    assert (one.queued, one.submitted, one.filtered) == (0, 0, 0)
                self.accepted[stage] += one.queued
                if one.submitted:
                    self.accepted[target] += one.submitted

        if pages:
            self.say(self.stages[stage].commit(pages), committed)

    def page(self, stage: str, lease_id: str) -> PageCommit:
        rng = self.rng
        prints = [
            fingerprint(str(rng.randrange(60))) if rng.random() < 0.9 else ""
            for _ in range(rng.choice([0, 0, 1, 1, 3]))
        ]
        children = [Child(self.payload(), one, rng.randint(-2, 2), rng.choice(list(When))) for one in prints]
        subtasks = [self.task(name) for name in STAGES[stage].hands_to for _ in range(rng.choice([0, 1, 2]))]
        items = [b'{"n":%d}' % next(self.numbers) for _ in range(rng.choice([0, 1, 2]))]
        own = fingerprint(str(rng.randrange(60)))
        outcome = rng.choice(["", "gone"])
        return PageCommit(lease_id, own, outcome, children=children, subtasks=subtasks, items=items)

    def renew(self) -> None:
        who = stage, _ = self.somebody()
        if some := self.rng.sample(sorted(self.held[who]), min(len(self.held[who]), 3)):
            still = {lease_id for lease_id in some if self.still_leased(stage, lease_id)}
            lost = run(self.client, self.stages[stage].renew(some, ttl_ms=self.rng.choice([0, LONG_MS])))
            assert set(lost) == set(some) - still

    def release(self) -> None:
        who = stage, _ = self.somebody()
        if some := self.some_held(who):
            self.say(self.stages[stage].release(some), lambda _: None)

    def delay(self) -> None:
        who = stage, _ = self.somebody()
        rng = self.rng
        pages = [
            Delay(one, rng.choice([0, 0, 1, LONG_MS]), "http-500", "no", rng.choice([0, 0, 1]), rng.random() < 0.8)
            for one in self.some_held(who)
        ]
        if pages:
            self.say(self.stages[stage].delay(pages, max_failures=2), lambda _: None)

    def park(self) -> None:
        who = stage, _ = self.somebody()
        if pages := [Park(one, "broken", "it\nis\x1fbroken") for one in self.some_held(who)]:
            self.say(self.stages[stage].park(pages), lambda _: None)

    def reclaim(self) -> None:
        stage, _ = self.somebody()
        call = self.stages[stage].reclaim(max_deliveries=3, silence_ms=0, limit=self.rng.choice([1, 100]))
        self.say(call, lambda _: None)

    def replay(self) -> None:
        stage, _ = self.somebody()
        letters = [one.decode() for one in self.client.hkeys(self.stages[stage].keys.dead)]
        some = self.rng.sample(sorted(letters), min(len(letters), 4))
        self.say(self.stages[stage].replay([*some, "no such letter"]), lambda _: None)

    def enqueue(self) -> None:
        stage, _ = self.somebody()
        rng = self.rng
        # What nobody filters is queued as often as it is said: told apart from pages, which are done once.
        roots = [Child(b"again" + self.payload(), rng.choice(["", "5", "-6", "7"])) for _ in range(rng.randint(1, 2))]
        call = self.stages[stage].enqueue(roots, token=f"e{next(self.numbers)}", job=rng.choice(JOBS))
        self.say(call, lambda queued: self.accepted.update({stage: queued}))

    def announce(self) -> None:
        self.say(announce(self.lane, self.rng.choice(JOBS[1:]), self.rng.choice([0, 0, LONG_MS])), lambda _: None)

    def prioritize(self) -> None:
        job, priority = self.rng.choice(JOBS[1:]), self.rng.randint(-3, 3)
        stage, _ = self.somebody()
        self.say(prioritize(self.lane, stage, self.order, job, priority, "0"), lambda _: None)

    def purge(self) -> None:
        stage, _ = self.somebody()
        place = self.rng.choice([one for one in Place if one is not Place.LEASED])
        pieces = list(itertools.chain(*portions(self.client, self.lane, stage, place)))
        if some := self.rng.sample(pieces, min(len(pieces), 2)):
            forget = self.rng.random() < 0.5
            call = purge(self.stages[stage], place, some, counter="dropped", forget=forget)
            self.say(call, lambda purged: self.done.update({stage: purged}))

    def restore(self) -> None:
        stage, _ = self.somebody()
        rng, token = self.rng, f"r{next(self.numbers)}"
        history = written((Death(1, "http-500", 0, 3, "it was broken"),)) if rng.random() < 0.5 else b""
        records = [
            Record(rng.choice(JOBS), rng.choice(["", "a", "b"]), rng.randint(-2, 2), 0, 1, history, self.payload())
            for _ in range(rng.randint(1, 3))
        ]
        match rng.randrange(3):
            case 0:
                tasks = [self.task(stage) for _ in range(rng.randint(1, 3))]
                call = restore_tasks(self.stages[stage], tasks, token=token, express=rng.random() < 0.3)
            case 1:
                pages = [Waiting(one, "3", "1", rng.choice([None, 0, None])) for one in records]
                call = restore_requests(self.stages[stage], pages, token=token)
            case _:
                letters = [DeadLetter.of(one, "http-403", "no", 1) for one in records]
                call = restore_letters(self.stages[stage], [Parked(one, "3", "1") for one in letters], token=token)
        self.say(call, lambda restored: self.accepted.update({stage: max(0, restored)}))

    def report(self) -> None:
        stage, worker = self.somebody()
        number = next(self.numbers)
        self.say(self.stages[stage].report(worker, number, {"pages": 1}), lambda _: None)

    def leave(self) -> None:
        stage, worker = self.somebody()
        self.say(self.stages[stage].leave(worker), lambda _: None)

    def misfortune(self) -> None:
        stage, _ = self.somebody()
        keys = self.stages[stage].keys
        match self.rng.randrange(4):
            case 0:
                self.client.script_flush()
            case 1:
                for stream in self.client.keys(f"{keys.base}:tasks*"):
                    self.client.xgroup_destroy(stream, GROUP)
            case 2:
                self.client.hset(keys.control, "paused", self.rng.choice([0, 0, 0, 0, 1]))
            case 3:
                self.client.hset(keys.control, "rate", self.rng.choice(["0", "100000", "?"]))

    # The walk ---------------------------------------------------------------------------------------------------------

    STEPS = (
        ("submit", 7), ("push_from_outside", 3), ("read", 12), ("admit", 12), ("lease", 16), ("lease_again", 3),
        ("commit", 18), ("renew", 2), ("release", 4), ("delay", 7), ("park", 2), ("reclaim", 9), ("replay", 3),
        ("enqueue", 2), ("announce", 2), ("prioritize", 2), ("purge", 2), ("restore", 2), ("report", 2), ("leave", 1),
        ("misfortune", 1), ("say_again", 14),
    )  # fmt: skip

    def go(self, steps: int) -> None:
        names, weights = zip(*self.STEPS, strict=True)
        for at, name in enumerate(self.rng.choices(names, weights, k=steps)):
            getattr(self, name)()
            self.steps[name] += 1
            try:
                self.check()
            except AssertionError as error:
                raise AssertionError(f"after step {at}, {name}: {error}") from error

    # The end ----------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """One worker takes up everything that is left, and every letter that is a page."""
        for _ in range(3):
            for stage in STAGES:
                self.drain(stage)
            self.check()
            for store in self.stages.values():
                letters = [one.decode() for one in self.client.hkeys(store.keys.dead)]
                self.do(store.replay(letters))
            self.check()
        for stage in STAGES:
            self.drain(stage)
        for job in JOBS[1:]:
            self.do(announce(self.lane, job, 0))
        self.check()

    def lease_all(self, store: StageStore) -> Call[Leased]:
        return store.lease(1_000, worker=f"l{next(self.numbers)}", number=1, ttl_ms=LONG_MS)

    def drain(self, stage: str) -> None:
        store, keys = self.stages[stage], self.stages[stage].keys
        self.client.delete(keys.control, self.lane.site)
        for waiting in (keys.leases, keys.delayed):
            if members := self.client.zrange(waiting, 0, -1):
                self.client.zadd(waiting, dict.fromkeys(members, 0))
        self.do(store.reclaim(max_deliveries=1_000_000, silence_ms=LONG_MS, limit=100_000))
        streams = TaskStreams(self.client, keys, "survivor")
        while entries := streams.read(1_000) + streams.claim(0, 1_000) + streams.read(1_000):
            for express in (True, False):
                self.take_in(stage, [one for one in entries if one.express == express], express=express, roots=1)
        while leases := run(self.client, self.lease_all(store)).leases:
            for one in self.do(store.commit([PageCommit(lease.id) for lease in leases])):
                self.done[stage] += one.ok
            self.committed.update(lease.record.payload for lease in leases)


WALKS = [
    pytest.param(1, 2_000, PRIORITY, RunFilter(), id="priority-run"),
    pytest.param(2, 1_000, FIFO, ExactFilter(buckets=16), id="fifo-exact"),
    pytest.param(3, 1_000, LIFO, BloomFilter(capacity=20, error=0.01), id="lifo-bloom"),
    pytest.param(4, 1_000, PRIORITY, WindowFilter(age_ms=0, size=30, hits=2), id="priority-window"),
]


@pytest.mark.parametrize(("seed", "steps", "order", "dupefilter"), WALKS)
def test_books_are_true_after_every_verb(
    client: redis.Redis, seed: int, steps: int, order: QueueOrder, dupefilter: Dupefilter
) -> None:
    # Given three workers on three stages; when they do what they do; then every book is true after every step
    walk = Walk(client, seed, order, dupefilter)
    walk.go(steps)
    assert all(walk.steps[name] for name, _ in walk.STEPS)
    assert sum(walk.done.values()) > steps / 20, "the walk went nowhere"

    # When the rest is finished
    walk.finish()

    # Then nothing is open, held, or pending, and only what is no task is dead
    for stage, store in walk.stages.items():
        books = audit(client, walk.lane, JOBS[1:])[stage]
        assert (books.open, books.accepted) == (0, books.done + books.dead)
        assert client.exists(store.keys.leases, store.keys.leased, store.keys.runs, store.keys.delayed) == 0
        for stream in (store.keys.tasks, store.keys.express):
            assert client.xpending(stream, GROUP)["pending"] == 0
        assert all(b"\x1ftask\x1f" in letter for letter in client.hvals(store.keys.dead))
    assert [key for key in client.keys("*:seen:run:*") if not key.endswith(b":run:")] == []
    for job in JOBS[1:]:
        assert job_books(client, [walk.lane], job).finished

    # And every page was done once, and so every item is there once
    assert [
        payload for payload, times in walk.committed.items() if times > 1 and not payload.startswith(b"again")
    ] == []
    stored = [item["n"] for _, entry in client.xrange(walk.lane.items) for item in orjson.loads(entry[b"i"])]
    assert Counter(stored) == Counter(walk.items)
    assert len(set(stored)) == len(stored)
