"""Every execution of two hubs on one prefix, within bounds: the protocol of `snapshot.chain`.

Owns the world (an in-memory remote with exact conditional semantics, the hubs' lives, what is still
on its way), the choices in it and the invariants. The hubs are real code, see
`tests.fault.replayed`. `explore` visits every state that can be reached, breadth first, so that the
trace of a violation is as short as any.

The choices, at every question of either hub to the remote:
- which hub goes on;
- what becomes of the question: it is answered; the process dies before it or after (its directory
  stays as it was at any local write since the last answer, and it may start again on it); it is not
  answered, and has not arrived, or has landed, or lands at any later time, whether or not the
  process lives on;
- the clean-up: segments that HEAD does not name, and that were put before HEAD was last replaced,
  are deleted (the younger ones may be about to be named);
- where asked for, somebody deletes HEAD.

All but an answer cost a fault, of which an execution has a given number. The bounds: that number,
the lives of a hub, and the writes of each life.
"""

import dataclasses
from array import array
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from snapshot.layout import FORMAT, HEAD
from tests.fault.explored_world import (
    Hub,
    Plan,
    Violation,
    World,
    can_land,
    decoded,
    judge,
    perform,
)
from tests.fault.replayed import Answer, Files, Lab, Node, Process, Request

NO_ANSWER = Answer("no answer")

ENDS = {
    "done",
    "Fenced",
    "StartRefused",
    "NothingToRestore",
    "RemoteUnavailable",
    "ChainMoved",
    "HeadGone",
    "ForeignPrefix",
    "CatchUpNeeded",
}
"""How a process may end."""


@dataclass(slots=True)
class Report:
    """What the exploration has seen."""

    states: int = 0
    steps: int = 0
    runs: int = 0
    """How often a process was run again to find out what it does next."""
    seen: Counter[str] = field(default_factory=Counter)
    """Events, and how processes ended."""


Step = tuple[str, World]


def explore(plan: Plan, path: Path) -> Report:
    """Visit every state within the plan's bounds; raises `Violation`."""
    return _Explorer(plan, path).run()


class _Explorer:
    """The search, and what it keeps of each state: that it was seen, and by which step first."""

    def __init__(self, plan: Plan, path: Path) -> None:
        self._plan, self._report = plan, Report()
        self._lab = Lab(path, plan.chain)
        self._ids: dict[object, int] = {}
        self._known: set[bytes] = set()
        self._before, self._labels = array("q"), array("q")

    def run(self) -> Report:
        queue = deque([(self._first(), 0)])
        self._add(queue[0][0], 0, "begin")
        while queue:
            world, index = queue.popleft()
            steps = _Steps(self._plan, self._lab, world, self._report.seen)
            try:
                for label, reached in steps.all():
                    self._report.steps += 1
                    if (new := self._add(reached, index, label)) is not None:
                        queue.append((reached, new))
            except Violation as error:
                label = f"{steps.label}  <-- {error.what}"
                raise Violation(error.what, (*self._trace(index), label)) from error
        self._report.states, self._report.runs = len(self._before), self._lab.runs
        return self._report

    def _first(self) -> World:
        """Let hub A put its first full undisturbed, unless both race for an empty prefix."""
        plan = self._plan
        hubs = (
            Hub(Process("A", 0, (), False, plan.writes + 1, repeats=True), None, ()),
            Hub(
                Process("B", 0, (), plan.second == "restored", plan.writes, repeats=False), None, ()
            ),
        )
        world = World({}, frozenset(), (), hubs, 0)
        while plan.second != "fresh" and not any(name.endswith(".hs") for name in world.objects):
            world = self._undisturbed(world)
        while plan.second != "fresh" and not world.acked:
            world = self._undisturbed(world)
        return world._replace(faults=plan.faults)

    def _undisturbed(self, world: World) -> World:
        """Let hub A go on by one step."""
        return next(_Steps(self._plan, self._lab, world, Counter()).all())[1]

    def _add(self, world: World, index: int, label: str) -> int | None:
        """Note a state; None when it had been seen."""
        key = array("q", self._key(world)).tobytes()
        if key in self._known:
            return None
        self._known.add(key)
        name = self._ids.setdefault(label, len(self._ids))
        self._before.append(index)
        self._labels.append(name)
        return len(self._before) - 1

    def _key(self, world: World) -> tuple[int, ...]:
        """Name a state by small numbers: equal ones have an equal future."""
        parts: list[object] = [
            frozenset(world.objects.items()),
            world.young,
            world.late,
            (world.acked, world.epochs, world.handed, world.is_made),
        ]
        for hub in world.hubs:
            life = hub.node.number if hub.node else hub.files
            parts.append((hub.process, life, hub.is_fenced, hub.is_dead))
        ids = self._ids
        return (world.faults, *(ids.setdefault(part, len(ids)) for part in parts))

    def _trace(self, index: int) -> list[str]:
        names = {number: each for each, number in self._ids.items() if isinstance(each, str)}
        labels: list[str] = []
        while index:
            labels.append(names[self._labels[index]])
            index = self._before[index]
        return labels[::-1]


class _Steps:
    """Everything that can happen next in one state; checks the invariants of each step."""

    def __init__(self, plan: Plan, lab: Lab, world: World, seen: Counter[str]) -> None:
        self._plan, self._lab, self._world, self._seen = plan, lab, world, seen
        self.label = ""

    def all(self) -> Iterator[Step]:
        """Yield them; only one hub's where no other step could make a difference to it."""
        numbers = self._undisturbable()
        for number in numbers or (0, 1):
            hub = self._world.hubs[number]
            if hub.node is None or hub.node.request is None:
                yield from self._starts(number, hub)
            else:
                yield from self._answers(number, hub, hub.node, hub.node.request)
        if numbers:
            return
        yield from self._landings()
        if self._world.faults:
            yield from self._clean_up()
            yield from self._deletion()

    def _undisturbable(self) -> tuple[int, ...]:
        """Return the hub that may go first without loss, if there is one (a partial order).

        To begin a life on one's own directory, to put a segment (its name is its own, and the
        earlier it lies there the sooner the clean-up may take it) and to look at a format.json that
        is there commute with all that others do, and whatever becomes of them does too. Not while
        hub B has still to copy A's directory: it sees how far A has come.
        """
        if self._plan.second == "copied" and not self._world.hubs[1].process.life:
            return ()
        for number, hub in enumerate(self._world.hubs):
            request = hub.node.request if hub.node else None
            if request is None and hub.process.life < self._plan.lives:
                return (number,)
            if request and request.op == "create" and request.name.endswith(".hs"):
                return (number,)
            if request and request.name == FORMAT and FORMAT in self._world.objects:
                return (number,)
        return ()

    # ---------------------------------------------------------------- a hub's steps

    def _starts(self, number: int, hub: Hub) -> Iterator[Step]:
        """Begin a life, on the directory as it is."""
        if hub.process.life == self._plan.lives:
            return
        for files in self._directories(number, hub):
            self.label = f"{hub.process.name} starts"
            process = dataclasses.replace(hub.process, life=hub.process.life + 1, files=files)
            node = self._lab.start(process)
            started = hub._replace(process=process, node=node, files=node.files[-1], is_dead=False)
            yield self.label, self._with(self._world, number, started)

    def _directories(self, number: int, hub: Hub) -> tuple[Files, ...]:
        """Return what a new life may find: its own directory, or a copy of A's at any moment."""
        if number == 0 or self._plan.second != "copied" or hub.process.life:
            return (hub.files,)
        first = self._world.hubs[0]
        return tuple(dict.fromkeys(first.node.files)) if first.node else (first.files,)

    def _answers(self, number: int, hub: Hub, node: Node, request: Request) -> Iterator[Step]:
        name = f"{hub.process} {request.op} {request.name}"
        if hub.is_dead and request.is_write:
            self.label = name
            raise Violation(f"{hub.process} was fenced and writes again")
        self.label = name
        world, answer = perform(self._world, request, self._plan)
        self.label = f"{name}: {answer.error or 'done'}"
        yield self.label, self._told(world, number, hub, answer)
        if not self._world.faults:
            return
        less = self._world._replace(faults=self._world.faults - 1)
        self.label = f"{name}: no answer, and nothing happened"
        yield self.label, self._told(less, number, hub, NO_ANSWER)
        for files in dict.fromkeys(node.files):
            self.label = f"{name}: dies before it"
            yield self.label, self._died(less, number, hub, files)
        if request.is_write:
            yield from self._write_faults(number, hub, request, name)

    def _write_faults(self, number: int, hub: Hub, request: Request, name: str) -> Iterator[Step]:
        less = self._world._replace(faults=self._world.faults - 1)
        assert hub.node is not None
        files = hub.node.files[-1]
        self.label = f"{name}: no answer"
        landed, answer = perform(less, request, self._plan)
        if not answer.error:
            self.label = f"{name}: done, no answer"
            yield self.label, self._told(landed, number, hub, NO_ANSWER)
            self.label = f"{name}: done, dies"
            yield self.label, self._died(landed, number, hub, files)
        late = less._replace(late=tuple(sorted((*less.late, request), key=_order)))
        if can_land(late, request, self._plan):
            self.label = f"{name}: no answer, lands later"
            yield self.label, self._told(late, number, hub, NO_ANSWER)
            self.label = f"{name}: dies, lands later"
            yield self.label, self._died(late, number, hub, files)

    def _told(self, world: World, number: int, hub: Hub, answer: Answer) -> World:
        """Let a process go on to its next question, and check what it did on the way."""
        assert hub.node is not None
        node = self._lab.answered(hub.process, hub.node, answer)
        hub = hub._replace(node=node, files=node.files[-1])
        for event in node.events:
            self._seen[event.what] += 1
            if event.what == "fenced":
                hub = hub._replace(is_fenced=True, is_dead=True)
            world = judge(world, hub, event)
        if node.ended:
            self._seen[node.ended] += 1
            if node.ended not in ENDS:
                raise Violation(f"{hub.process} ends with {node.ended}")
            hub = hub._replace(node=None)
        return self._with(world, number, hub)

    def _died(self, world: World, number: int, hub: Hub, files: Files) -> World:
        return self._with(world, number, hub._replace(node=None, files=files, is_dead=False))

    def _with(self, world: World, number: int, hub: Hub) -> World:
        hubs = (hub, world.hubs[1]) if number == 0 else (world.hubs[0], hub)
        late = tuple(request for request in world.late if can_land(world, request, self._plan))
        return world._replace(hubs=hubs, late=late)

    # ---------------------------------------------------------------- what happens by itself

    def _landings(self) -> Iterator[Step]:
        for request in dict.fromkeys(self._world.late):
            self.label = f"the late {request.op} of {request.name} lands"
            rest = list(self._world.late)
            rest.remove(request)
            world, _ = perform(self._world._replace(late=tuple(rest)), request, self._plan)
            yield self.label, self._with(world, 0, world.hubs[0])

    def _clean_up(self) -> Iterator[Step]:
        world = self._world
        if HEAD not in world.objects:
            return
        named = {ref.name for ref in decoded(world.objects[HEAD]).segments}
        old = {
            name
            for name in world.objects
            if name.endswith(".hs")
            and name not in named
            and not (self._plan.spares_young and name in world.young)
        }
        if old:
            self.label = f"the clean-up deletes {', '.join(sorted(old))}"
            kept = {name: data for name, data in world.objects.items() if name not in old}
            self._seen["clean-up"] += 1
            yield self.label, world._replace(objects=kept, faults=world.faults - 1)

    def _deletion(self) -> Iterator[Step]:
        if self._plan.has_vandal and HEAD in self._world.objects:
            self.label = "somebody deletes HEAD"
            kept = {name: data for name, data in self._world.objects.items() if name != HEAD}
            yield self.label, self._world._replace(objects=kept, faults=self._world.faults - 1)


def _order(request: Request) -> tuple[str, str, bytes]:
    return request.name, request.op, request.data
