"""What is sent and what comes back, without sending it: the same for both kinds of client."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar
from urllib.parse import quote

import httpx

from . import _shapes
from ._errors import GateError, OutcomeUnknown, Unreachable
from ._message import Dialect, Message, dialect_of, raw
from ._shapes import Approval, Turn

T = TypeVar("T")

#: A tag, or some: the tools that have any of them.
Tags: TypeAlias = str | Sequence[str]

#: Failures before the first byte of a request was sent.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    acts: bool = False
    """Whether something may have been done once it was sent."""
    content: bytes | None = None
    params: Mapping[str, str | list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def answer(self, response: httpx.Response) -> T:
        """The answer, or the problem that stands in its place."""
        try:
            body = json.loads(response.content)
            if response.is_success:
                return self.read(body)
            problem = _problem(response.status_code, body)
        except (ValueError, KeyError, TypeError, AttributeError):
            # Something between here and the gate has answered in its place.
            self._strange(response)
        if self.acts and problem.code == "timed_out":
            raise OutcomeUnknown(_UNKNOWN.format(why=problem.detail)) from problem
        raise problem

    def failed(self, error: httpx.TransportError) -> NoReturn:
        """There was no answer."""
        why = str(error) or type(error).__name__
        if self.acts and not isinstance(error, _NOT_SENT):
            raise OutcomeUnknown(_UNKNOWN.format(why=why)) from error
        raise Unreachable(f"the gate gave no answer, and nothing was done: {why}") from error

    def _strange(self, response: httpx.Response) -> NoReturn:
        what = f"status {response.status_code} with a body that is none of a gate's"
        # Below 500 whoever answered says that the request went no further.
        if self.acts and not 300 <= response.status_code < 500:
            raise OutcomeUnknown(_UNKNOWN.format(why=what))
        raise GateError(response.status_code, {"title": "This is no answer of a gate", "detail": what})


_UNKNOWN = (
    "the request was sent, and what became of it is not known: {why}. "
    "Send the very same request again: a gate does not do twice what it has done"
)


def calls(
    message: Message,
    dialect: Dialect | None,
    otherwise: Dialect,
    dry_run: bool,
    operation: str | None,
    approval: str | None,
    tags: Tags | None,
) -> Request[Turn]:
    text = raw(message)
    named = dialect or dialect_of(message, otherwise)
    content = b'{"dialect":' + json.dumps(named).encode() + b',"message":' + text
    content += b',"dry_run":true}' if dry_run else b"}"
    headers = {"Content-Type": "application/json"}
    if operation is not None:
        headers["Toolgate-Operation"] = operation
    if approval is not None:
        headers["Toolgate-Approval"] = approval
    return Request(
        "POST", "/v1/calls", _shapes.turn, acts=not dry_run, content=content, params=_within(tags), headers=headers
    )


def tools(dialect: Dialect, tags: Tags | None) -> Request[list[dict[str, Any]]]:
    return Request("GET", "/v1/tools", _shapes.tools, params={"dialect": dialect, **_within(tags)})


def _within(tags: Tags | None) -> dict[str, str | list[str]]:
    if tags is None:
        return {}
    named = [tags] if isinstance(tags, str) else list(tags)
    if not named:
        # Sent as it is, it would be everything, and who wrote it may have meant nothing.
        raise ValueError("a list of tags names at least one; None is no bound")
    return {"tag": named}


def approvals(state: str | None) -> Request[list[Approval]]:
    params = {} if state is None else {"state": state}
    return Request(
        "GET", "/v1/approvals", lambda body: [_shapes.approval(one) for one in body["approvals"]], params=params
    )


def approval(id: str) -> Request[Approval]:
    return Request("GET", _place(id), _shapes.approval)


def decision(id: str, decision: str) -> Request[Approval]:
    content = json.dumps({"decision": decision}).encode()
    headers = {"Content-Type": "application/json"}
    return Request("POST", _place(id), _shapes.approval, acts=True, content=content, headers=headers)


def _place(id: str) -> str:
    if id in ("", ".", ".."):
        raise ValueError("this is no id of an approval")
    return f"/v1/approvals/{quote(id, safe='')}"


def _problem(status: int, body: Any) -> GateError:
    if "code" not in body:
        raise KeyError("code")
    answered = _shapes.turn(body) if "outcomes" in body else None
    return GateError(status, body, _shapes.problems(body), answered)
