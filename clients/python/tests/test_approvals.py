"""A call that waits for a person, and the person's answer."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from conftest import Shop, assistant, call, refund

from toolgate_client import AsyncGate, Gate, GateError

WAITING = assistant(call("c1", "create_refund", refund(8000, "ord_1001")))


def test_a_call_that_waits_is_done_once_it_is_approved(shop: Shop, gate: Gate) -> None:
    [waiting] = gate.calls(WAITING).outcomes
    assert (waiting.code, waiting.status, waiting.effect) == ("approval_required", 202, "none")
    assert waiting.pending is not None and waiting.pending.approvers == ("manager",)
    approved = shop.toolgate("approvals", str(shop.folder), "approve", waiting.pending.id, "--as", "mia@acme")
    assert approved.returncode == 0, approved.stderr
    [done] = gate.calls(WAITING, approval=waiting.pending.id).outcomes
    assert (done.ok, done.effect) == (True, "done")


def test_whoever_may_only_call_may_not_approve(gate: Gate) -> None:
    for ask in (gate.approvals.list, lambda: gate.approvals.approve("apr_1")):
        with pytest.raises(GateError) as raised:
            ask()
        assert (raised.value.status, raised.value.code) == (403, "missing_scope")
    # Whoever asked may look at it; of what others asked they learn nothing.
    with pytest.raises(GateError) as raised:
        gate.approvals.get("apr_1")
    assert (raised.value.status, raised.value.code) == (404, "no_such_approval")


@pytest.mark.parametrize("id", ["", ".", ".."])
def test_an_id_leads_nowhere_else(gate: Gate, id: str) -> None:
    with pytest.raises(ValueError):
        gate.approvals.approve(id)


class Desk:
    """A shop whose people are known by tokens: one who calls, one who approves."""

    def __init__(self, shop: Shop) -> None:
        if shop.toolgate("token", "--help").returncode != 0:
            pytest.skip("this toolgate gives out no tokens")
        settings = Path(shop.folder, "toolgate.toml")
        before, _, _ = settings.read_text().partition("[identity]")
        settings.write_text(before + '[identity]\nkind = "tokens"\n')
        self.caller = self._token(shop, "alice@acme", "support", "calls")
        self.manager = self._token(shop, "mia@acme", "manager", "calls,approvals:approve")
        shop.serve()

    def _token(self, shop: Shop, person: str, role: str, scope: str) -> str:
        words = ["token", "new", str(shop.folder), "--as", person, "--role", role, "--scope", scope, "--json"]
        made = shop.toolgate(*words)
        assert made.returncode == 0, made.stderr
        return str(json.loads(made.stdout)["token"])


@pytest.fixture
def desk(folder: Shop) -> object:
    yield Desk(folder)
    folder.kill()


def test_a_manager_sees_what_waits_and_answers_it(folder: Shop, desk: Desk) -> None:
    with Gate(folder.url, desk.caller) as caller, Gate(folder.url, desk.manager) as manager:
        [waiting] = caller.calls(WAITING).outcomes
        assert waiting.pending is not None
        [listed] = manager.approvals.list("pending")
        assert manager.approvals.get(waiting.pending.id) == listed
        assert (listed.tool, listed.tenant, listed.state) == ("create_refund", "acme", "pending")
        assert listed.arguments == refund(8000, "ord_1001")
        assert listed.preview and "8000" in listed.preview
        assert manager.approvals.approve(listed.id).state == "granted"
        [done] = caller.calls(WAITING).outcomes
        assert (done.ok, done.effect) == (True, "done")
        with pytest.raises(GateError) as raised:
            manager.approvals.deny(listed.id)
        assert (raised.value.status, raised.value.code) == (409, "approval_closed")
        assert manager.approvals.list("pending") == []


def test_what_is_denied_is_not_done(folder: Shop, desk: Desk) -> None:
    async def deny(id: str) -> str:
        async with AsyncGate(folder.url, desk.manager) as manager:
            assert [one.id for one in await manager.approvals.list()] == [id]
            assert (await manager.approvals.get(id)).state == "pending"
            return (await manager.approvals.deny(id)).state

    with Gate(folder.url, desk.caller) as caller:
        [waiting] = caller.calls(WAITING).outcomes
        assert waiting.pending is not None
        assert asyncio.run(deny(waiting.pending.id)) == "denied"


def test_a_token_that_nobody_gave_out_asks_for_nothing(folder: Shop, desk: Desk) -> None:
    for token in (None, desk.caller + "x"):
        with Gate(folder.url, token) as stranger, pytest.raises(GateError) as raised:
            stranger.execute(WAITING)
        assert (raised.value.status, raised.value.code) == (401, "unauthenticated")
        assert desk.caller not in str(raised.value)
