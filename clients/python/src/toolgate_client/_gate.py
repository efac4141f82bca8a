"""The clients: one that waits, one that is awaited."""

from __future__ import annotations

import builtins
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import _requests
from ._message import Dialect, Message
from ._requests import Request, Tags
from ._shapes import Approval, Turn

T = TypeVar("T")

#: Seconds until an answer has to be there. Deadlines are the gate's: it answers sooner, whatever becomes of a call.
_TIMEOUT = 120.0
#: Seconds until there is a connection.
_CONNECT = 5.0


class _Settings:
    def __init__(
        self, url: str, token: str | None, dialect: Dialect, tags: Tags | None, timeout: float | httpx.Timeout
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("the url of a gate begins with http:// or https://")
        self.url = url.rstrip("/")
        self.dialect = dialect
        self.tags = tags
        headers = {"Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if not isinstance(timeout, httpx.Timeout):
            timeout = httpx.Timeout(timeout, connect=min(timeout, _CONNECT))
        # Nothing around decides where a model's message goes: no proxy and no credentials from the environment, and no
        # redirect is followed.
        self.client: dict[str, Any] = {
            "headers": headers,
            "timeout": timeout,
            "trust_env": False,
            "follow_redirects": False,
        }

    def within(self, tags: Tags | None) -> Tags | None:
        return self.tags if tags is None else tags

    def of(self, request: Request[Any]) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": self.url + request.path,
            "params": dict(request.params) or None,
            "content": request.content,
            "headers": dict(request.headers),
        }


class Gate:
    """A gate that `toolgate serve` has opened.

    ``dialect`` is the one of messages whose type does not say it, and of the tools that are listed. Within ``tags``
    only the tools that have any of them are there, to list and to call alike.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        dialect: Dialect = "openai-chat",
        tags: Tags | None = None,
        timeout: float | httpx.Timeout = _TIMEOUT,
    ) -> None:
        self._settings = _Settings(url, token, dialect, tags, timeout)
        self._client = httpx.Client(**self._settings.client)
        self.approvals = Approvals(self)

    def execute(
        self,
        message: Message,
        *,
        dialect: Dialect | None = None,
        dry_run: bool = False,
        operation: str | None = None,
        approval: str | None = None,
        tags: Tags | None = None,
    ) -> list[dict[str, Any]]:
        """Hands in a model's message; gives the tool messages that answer its calls, for the conversation.

        A call that is refused, or waits for approval, is answered as well: the model reads why. ``operation`` names the
        operation and ``approval`` the grant to use, each for a message of one call. ``tags`` take the place of the
        gate's own: give the ones that the tools were listed by.
        """
        return self.calls(
            message, dialect=dialect, dry_run=dry_run, operation=operation, approval=approval, tags=tags
        ).messages

    def calls(
        self,
        message: Message,
        *,
        dialect: Dialect | None = None,
        dry_run: bool = False,
        operation: str | None = None,
        approval: str | None = None,
        tags: Tags | None = None,
    ) -> Turn:
        """As :meth:`execute`, with what became of each call."""
        within = self._settings.within(tags)
        return self._send(
            _requests.calls(message, dialect, self._settings.dialect, dry_run, operation, approval, within)
        )

    def tools(self, dialect: Dialect | None = None, *, tags: Tags | None = None) -> list[dict[str, Any]]:
        """The tools that the caller may see, as the dialect declares them to a model."""
        return self._send(_requests.tools(dialect or self._settings.dialect, self._settings.within(tags)))

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Gate({self._settings.url!r})"

    def _send(self, request: Request[T]) -> T:
        try:
            response = self._client.request(**self._settings.of(request))
        except httpx.TransportError as error:
            request.failed(error)
        return request.answer(response)


class Approvals:
    """What waits for a person, and a person's answer."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def list(self, state: str | None = None) -> builtins.list[Approval]:
        """The approvals that the caller sees, newest first; of one state, where it is given."""
        return self._gate._send(_requests.approvals(state))

    def get(self, id: str) -> Approval:
        """One approval."""
        return self._gate._send(_requests.approval(id))

    def approve(self, id: str) -> Approval:
        """Says yes. The call itself has to be sent again: an approval runs nothing."""
        return self._gate._send(_requests.decision(id, "approve"))

    def deny(self, id: str) -> Approval:
        """Says no."""
        return self._gate._send(_requests.decision(id, "deny"))


class AsyncGate:
    """As :class:`Gate`, to be awaited."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        dialect: Dialect = "openai-chat",
        tags: Tags | None = None,
        timeout: float | httpx.Timeout = _TIMEOUT,
    ) -> None:
        self._settings = _Settings(url, token, dialect, tags, timeout)
        self._client = httpx.AsyncClient(**self._settings.client)
        self.approvals = AsyncApprovals(self)

    async def execute(
        self,
        message: Message,
        *,
        dialect: Dialect | None = None,
        dry_run: bool = False,
        operation: str | None = None,
        approval: str | None = None,
        tags: Tags | None = None,
    ) -> list[dict[str, Any]]:
        """As :meth:`Gate.execute`. A task that is cancelled does not call back what was sent."""
        turn = await self.calls(
            message, dialect=dialect, dry_run=dry_run, operation=operation, approval=approval, tags=tags
        )
        return turn.messages

    async def calls(
        self,
        message: Message,
        *,
        dialect: Dialect | None = None,
        dry_run: bool = False,
        operation: str | None = None,
        approval: str | None = None,
        tags: Tags | None = None,
    ) -> Turn:
        """As :meth:`Gate.calls`."""
        within = self._settings.within(tags)
        return await self._send(
            _requests.calls(message, dialect, self._settings.dialect, dry_run, operation, approval, within)
        )

    async def tools(self, dialect: Dialect | None = None, *, tags: Tags | None = None) -> list[dict[str, Any]]:
        """As :meth:`Gate.tools`."""
        return await self._send(_requests.tools(dialect or self._settings.dialect, self._settings.within(tags)))

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def __aenter__(self) -> AsyncGate:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncGate({self._settings.url!r})"

    async def _send(self, request: Request[T]) -> T:
        try:
            response = await self._client.request(**self._settings.of(request))
        except httpx.TransportError as error:
            request.failed(error)
        return request.answer(response)


class AsyncApprovals:
    """As :class:`Approvals`, to be awaited."""

    def __init__(self, gate: AsyncGate) -> None:
        self._gate = gate

    async def list(self, state: str | None = None) -> builtins.list[Approval]:
        """As :meth:`Approvals.list`."""
        return await self._gate._send(_requests.approvals(state))

    async def get(self, id: str) -> Approval:
        """As :meth:`Approvals.get`."""
        return await self._gate._send(_requests.approval(id))

    async def approve(self, id: str) -> Approval:
        """As :meth:`Approvals.approve`."""
        return await self._gate._send(_requests.decision(id, "approve"))

    async def deny(self, id: str) -> Approval:
        """As :meth:`Approvals.deny`."""
        return await self._gate._send(_requests.decision(id, "deny"))
