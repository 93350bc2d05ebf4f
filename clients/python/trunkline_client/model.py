"""Types of the channel. Unknown members are ignored."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


def _known(kind: type, values: dict[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    return {name: value for name, value in values.items() if name in names}


@dataclass(frozen=True)
class Filters:
    """An event must match all given lists; an empty list does not restrict.

    names are exact or a class such as "call.*".
    """

    account_ids: list[str] = field(default_factory=list)
    event_types: list[str] = field(default_factory=list)
    queue_ids: list[str] = field(default_factory=list)
    agent_ids: list[str] = field(default_factory=list)
    call_ids: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def body(self) -> dict[str, list[str]]:
        return {name: values for name, values in asdict(self).items() if values}


@dataclass(frozen=True)
class Facts:
    """Describes an event in one vocabulary for all platforms (docs/facts.md)."""

    name: str
    agent_id: str | None = None
    agent_name: str | None = None
    queue_id: str | None = None
    call_id: str | None = None
    interaction_id: str | None = None
    origination_call_id: str | None = None
    caller: str | None = None
    callee: str | None = None
    state: str | None = None
    reason: str | None = None
    previous_state: str | None = None
    previous_since: int | None = None  # Unix seconds
    wait_ms: int | None = None
    talk_ms: int | None = None
    timestamp_ms: int | None = None
    agent_state: str | None = None  # of the agent, after an event about a call
    contact: str | None = None  # of a device: the registration that the event is about
    position: int | None = None  # of a call that enters a queue: its place there, from 1
    agent: dict[str, Any] | None = None  # what the platform said of the agent, piece by piece


@dataclass(frozen=True)
class Event:
    """A message of the channel. facts is None for events of older servers without facts."""

    id: str
    type: str
    account_id: str
    timestamp: int  # Unix seconds
    data: dict[str, Any]  # the source's event, complete and unchanged
    metadata: dict[str, Any]
    facts: Facts | None
    cursor: str  # position after this event

    @classmethod
    def parse(cls, message: dict[str, Any], cursor: str) -> Event:
        metadata = message.get("metadata") or {}
        facts = metadata.get("facts")
        return cls(
            id=message["id"], type=message.get("type", ""), account_id=message.get("account_id", ""),
            timestamp=message.get("timestamp", 0), data=message.get("data") or {}, metadata=metadata,
            facts=Facts(**_known(Facts, facts)) if facts and "name" in facts else None, cursor=cursor,
        )


@dataclass(frozen=True)
class Agent:
    account_id: str
    agent_id: str
    state: str
    status: str
    since: int  # Unix seconds
    agent_name: str | None = None
    queues: list[str] | None = None
    call_id: str | None = None
    after_call: str | None = None  # the state after the call; None: available
    reason: str | None = None
    memberships: list[dict[str, Any]] | None = None  # the queues in which it is paused or in wrap-up


@dataclass(frozen=True)
class Call:
    account_id: str
    call_id: str
    queue_id: str
    agent_id: str
    state: str
    since: int  # Unix seconds
    interaction_id: str | None = None
    caller: str | None = None
    position: int | None = None


@dataclass(frozen=True)
class Queue:
    account_id: str
    queue_id: str
    waiting: int
    talking: int
    agents: dict[str, int]
    longest_wait_since: int | None = None  # Unix seconds
    # Figures of today in the account's time zone:
    offered: int = 0
    answered: int = 0
    abandoned: int = 0
    service_level: float | None = None  # None: no calls count
    service_level_strict: float | None = None


@dataclass(frozen=True)
class Snapshot:
    """The agents, calls and queues, and the cursor at which they are exact."""

    event_id: str
    cursor: str
    timestamp: int  # Unix seconds
    agents: list[Agent]
    calls: list[Call]
    queues: list[Queue]
    state_since: int | None = None

    @classmethod
    def parse(cls, answer: dict[str, Any]) -> Snapshot:
        return cls(
            event_id=answer["event_id"], cursor=answer["cursor"], timestamp=answer["timestamp"],
            agents=[Agent(**_known(Agent, one)) for one in answer["agents"]],
            calls=[Call(**_known(Call, one)) for one in answer["calls"]],
            queues=[Queue(**_known(Queue, one)) for one in answer["queues"]],
            state_since=answer.get("state_since"),
        )
