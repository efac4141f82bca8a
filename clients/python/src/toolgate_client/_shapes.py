"""The answers of a gate. Members that a later gate adds are ignored, and stand in ``raw``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Effect = Literal["none", "done", "unknown"]
"""What became of the outside world: proved to be nothing, it happened, or nobody knows yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, with its place as a JSON pointer."""

    at: str
    code: str
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalNotice:
    """The approval that a call waits for."""

    id: str
    expires_at: str
    approvers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call was refused, who can mend it, and whether to send it again."""

    code: str
    message: str
    fix: str
    retry: str
    after_ms: int | None = None
    problems: tuple[Problem, ...] = ()
    rule: str | None = None
    reason: str | None = None
    instead: str | None = None
    approval: ApprovalNotice | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call."""

    call_id: str
    tool: str
    status: int
    ok: bool
    effect: Effect
    result: Any = None
    error: Refusal | None = None
    replayed: bool = False
    ref: str | None = None
    first_ref: str | None = None
    fault: str | None = None
    """What the gate says of its own failure, where it failed."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def code(self) -> str | None:
        """The code of the refusal; ``None`` where the call succeeded or the gate failed."""
        return self.error.code if self.error else None

    @property
    def pending(self) -> ApprovalNotice | None:
        """The approval that the call waits for."""
        return self.error.approval if self.error else None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message that was answered: the tool messages for the model, and what became of each call, in its order."""

    messages: list[dict[str, Any]]
    outcomes: tuple[Outcome, ...]
    warnings: tuple[Problem, ...] = ()
    """What was odd about the message, such as a stream whose pieces fit only by a rule."""


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval: what was asked for, by whom, and how it stands."""

    id: str
    state: str
    tool: str
    tenant: str
    requester: Mapping[str, Any]
    preview: str | None
    arguments: Mapping[str, Any]
    leniencies: tuple[Mapping[str, Any], ...]
    call_digest: str
    reasons: tuple[Mapping[str, Any], ...]
    created_at: str
    expires_at: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


def problems(body: Mapping[str, Any]) -> tuple[Problem, ...]:
    return _problems(body.get("problems"))


def turn(body: Mapping[str, Any]) -> Turn:
    return Turn(
        messages=list(body["messages"]),
        outcomes=tuple(_outcome(one) for one in body["outcomes"]),
        warnings=_problems(body.get("warnings")),
    )


def approval(body: Mapping[str, Any]) -> Approval:
    return Approval(
        id=body["id"],
        state=body["state"],
        tool=body["tool"],
        tenant=body["tenant"],
        requester=body["requester"],
        preview=body.get("preview"),
        arguments=body["arguments"],
        leniencies=tuple(body.get("leniencies") or ()),
        call_digest=body["call_digest"],
        reasons=tuple(body["reasons"]),
        created_at=body["created_at"],
        expires_at=body["expires_at"],
        raw=body,
    )


def tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(body["tools"])


def _problems(found: Sequence[Mapping[str, Any]] | None) -> tuple[Problem, ...]:
    return tuple(Problem(p["at"], p["code"], p["message"], p.get("hint")) for p in found or ())


def _outcome(one: Mapping[str, Any]) -> Outcome:
    reply = one.get("reply")
    common = {"call_id": one["call_id"], "tool": one.get("tool", ""), "status": one["status"], "raw": one}
    if reply is None:
        # A gate fails before anything is done, or not at all: from then on there is a reply.
        return Outcome(**common, ok=False, effect="none", fault=one.get("fault"))
    refused = None if reply["ok"] else reply["error"]
    said = reply if refused is None else refused
    return Outcome(
        **common,
        ok=reply["ok"],
        effect=said["effect"],
        result=reply.get("result"),
        error=None if refused is None else _refusal(refused),
        replayed=bool(reply.get("replayed", False)),
        ref=said.get("ref"),
        first_ref=said.get("first_ref", reply.get("first_ref")),
    )


def _refusal(error: Mapping[str, Any]) -> Refusal:
    notice = error.get("approval")
    return Refusal(
        code=error["code"],
        message=error["message"],
        fix=error["fix"],
        retry=error["retry"],
        after_ms=error.get("after_ms"),
        problems=problems(error),
        rule=error.get("rule"),
        reason=error.get("reason"),
        instead=error.get("instead"),
        approval=notice and ApprovalNotice(notice["id"], notice["expires_at"], tuple(notice["approvers"])),
    )
