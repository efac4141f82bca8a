"""Where there is no answer: what may be sent again, and that nothing is by itself."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from conftest import Shop, assistant, call, refund

from toolgate_client import AsyncGate, Gate, GateError, OutcomeUnknown, ToolgateError, Unreachable

MESSAGE = assistant(call("c1", "create_refund", refund(1500)))


class Odd:
    """Something at the gate's place that reads one request after another and answers each with the same bytes."""

    def __init__(self, answer: bytes | None) -> None:
        """``None`` answers nothing and keeps the connection."""
        self.answer = answer
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._kept: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65536)
            head, _, body = request.partition(b"\r\n\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line), 0
            )
            while len(body) < length:
                body += connection.recv(65536)
            self.requests.append(head)
            if self.answer is None:
                self._kept.append(connection)
                continue
            connection.sendall(self.answer)
            connection.close()

    def close(self) -> None:
        self._listener.close()


def odd(answer: bytes | None) -> Iterator[Odd]:
    server = Odd(answer)
    yield server
    server.close()


def http(status: str, body: str, kind: str = "text/html") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_where_nobody_listens_nothing_was_done() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with Gate(url) as gate, pytest.raises(Unreachable, match="nothing was done"):
        gate.execute(MESSAGE)

    async def awaited() -> None:
        async with AsyncGate(url) as gate:
            with pytest.raises(Unreachable):
                await gate.execute(MESSAGE)

    asyncio.run(awaited())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"messages":[',
        http("200 OK", "<html>"),
        http("200 OK", "[]", "application/json"),
        http("200 OK", '{"messages":[]}', "application/json"),
        http("502 Bad Gateway", "<html>upstream went away</html>"),
        http(
            "504 Gateway Timeout",
            '{"type":"x","status":504,"code":"timed_out","detail":"d"}',
            "application/problem+json",
        ),
    ],
    ids=["closed", "cut off", "a page", "a list", "half an answer", "a proxy's page", "the gate's own limit"],
)
def test_what_was_sent_and_not_answered_is_unknown_and_sent_once(answer: bytes) -> None:
    for server in odd(answer):
        with Gate(server.url) as gate, pytest.raises(OutcomeUnknown, match="very same"):
            gate.execute(MESSAGE)
        assert len(server.requests) == 1, "nothing is retried by itself"


def test_an_answer_that_does_not_come_in_time_is_unknown_too() -> None:
    for server in odd(None):
        with Gate(server.url, timeout=0.3) as gate, pytest.raises(OutcomeUnknown):
            gate.execute(MESSAGE)

        async def awaited(url: str = server.url) -> None:
            async with AsyncGate(url, timeout=0.3) as gate:
                with pytest.raises(OutcomeUnknown):
                    await gate.approvals.approve("apr_1")

        asyncio.run(awaited())
        assert len(server.requests) == 2


def test_what_asks_for_nothing_to_be_done_is_only_unreachable() -> None:
    for server in odd(b""):
        with Gate(server.url) as gate:
            for ask in (gate.tools, gate.approvals.list, lambda: gate.execute(MESSAGE, dry_run=True)):
                with pytest.raises(Unreachable):
                    ask()


def test_a_page_that_says_no_is_no_answer_of_a_gate_and_nothing_was_done() -> None:
    for status in ("404 Not Found", "302 Found"):
        for server in odd(http(status, "<html>")):
            with Gate(server.url) as gate, pytest.raises(GateError) as raised:
                gate.execute(MESSAGE)
            assert (raised.value.status, raised.value.code) == (int(status[:3]), "")


def test_the_environment_says_nothing_of_where_messages_go(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    for server in odd(http("200 OK", "{}", "application/json")):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, server.url)
        with Gate(shop.url) as gate:
            assert gate.tools() != []
        assert server.requests == []


def test_the_same_message_again_is_not_done_twice(shop: Shop) -> None:
    with Gate(shop.url) as gate:
        assert gate.calls(MESSAGE).outcomes[0].effect == "done"
        shop.kill()
        with pytest.raises(ToolgateError):
            gate.execute(MESSAGE)
    shop.serve()
    with Gate(shop.url) as gate:
        [again] = gate.calls(MESSAGE).outcomes
    assert (again.effect, again.replayed) == ("done", True)


def test_a_gate_that_drains_answers_what_it_has_taken(shop: Shop) -> None:
    with Gate(shop.url) as gate:
        assert gate.execute(MESSAGE) != []
        assert shop.stop() == 0
        with pytest.raises((Unreachable, OutcomeUnknown, GateError)):
            gate.execute(MESSAGE)


def test_what_was_answered_beside_a_failure_of_the_gate_is_not_lost() -> None:
    body = (
        '{"type":"urn:toolgate:problem:unavailable","title":"t","status":503,"detail":"d","code":"unavailable",'
        '"messages":[{"role":"tool","tool_call_id":"c1","content":"{}"}],"outcomes":['
        '{"call_id":"c1","tool":"t","status":200,"reply":{"ok":true,"result":1,"effect":"done","replayed":false,"ref":"r"}},'
        '{"call_id":"c2","status":503,"fault":"the store failed"}]}'
    )
    for server in odd(http("503 Service Unavailable", body, "application/problem+json")):
        with Gate(server.url) as gate, pytest.raises(GateError) as raised:
            gate.execute(MESSAGE)
        assert raised.value.answered is not None
        done, lost = raised.value.answered.outcomes
        assert (done.ok, done.effect) == (True, "done")
        assert (lost.ok, lost.effect, lost.fault) == (False, "none", "the store failed")
