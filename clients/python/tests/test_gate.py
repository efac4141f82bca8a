"""Messages of the official packages, through a real gate."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic.types
import openai.types.chat
import pytest
from conftest import Shop, assistant, call, refund
from openai.types.chat import ChatCompletionMessageParam

from toolgate_client import AsyncGate, Gate, GateError, Outcome


def test_a_completion_becomes_its_tool_messages_in_order(gate: Gate) -> None:
    calls = [call("c1", "get_order", {"order_id": "ord_4821"}), call("c2", "create_refund", refund("15"))]
    choice = {"index": 0, "message": assistant(*calls), "finish_reason": "tool_calls", "logprobs": None}
    completion = openai.types.chat.ChatCompletion.model_validate(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )
    messages: list[ChatCompletionMessageParam] = gate.execute(completion)  # type: ignore[assignment]
    assert [message["role"] for message in messages] == ["tool", "tool"]
    assert [message["tool_call_id"] for message in messages] == ["c1", "c2"]  # type: ignore[typeddict-item]
    order, refused = (json.loads(str(message["content"])) for message in messages)
    assert order["result"]["id"] == "ord_4821"
    assert refused["error"]["problems"][0]["at"] == "/amount_cents"


def test_a_message_of_anthropic_becomes_one_user_message(gate: Gate) -> None:
    message = anthropic.types.Message.model_validate(
        {
            "id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "t1", "name": "get_order", "input": {"order_id": "ord_4821"}},
                {"type": "tool_use", "id": "t2", "name": "get_ordr", "input": {}},
            ],
        }
    )  # fmt: skip
    [answer] = gate.execute(message)
    assert answer["role"] == "user"
    assert [block["tool_use_id"] for block in answer["content"]] == ["t1", "t2"]
    assert answer["content"][1]["is_error"] is True
    assert gate.execute(message.content) != [], "its blocks alone are a message too"


def test_an_outcome_says_what_became_of_a_call_and_of_the_same_one_again(gate: Gate) -> None:
    message = assistant(call("c1", "create_refund", refund(1500)))
    first, again = (gate.calls(message).outcomes[0] for _ in range(2))
    assert (first.ok, first.effect, first.replayed, first.code, first.status) == (True, "done", False, None, 200)
    assert (again.ok, again.effect, again.replayed) == (True, "done", True)
    assert again.result == first.result
    assert (first.result["refund_id"], first.result["amount_cents"]) == ("re_1", 1500)
    assert again.first_ref == first.ref != again.ref


def test_a_refusal_says_what_is_wrong_and_who_can_mend_it(gate: Gate) -> None:
    [refused] = gate.calls(assistant(call("c1", "create_refund", refund("15")))).outcomes
    assert isinstance(refused, Outcome)
    assert (refused.ok, refused.code, refused.effect, refused.result) == (False, "invalid_arguments", "none", None)
    assert refused.error is not None
    assert (refused.error.fix, refused.error.retry) == ("model", "after_change")
    [problem] = refused.error.problems
    assert (problem.at, problem.code, problem.hint) == ("/amount_cents", "type", "send the number without quotes")
    assert refused.pending is None


def test_a_dry_run_runs_nothing(gate: Gate) -> None:
    message = assistant(call("c1", "create_refund", refund(1500)))
    assert gate.calls(message, dry_run=True).outcomes[0].effect == "none"
    assert gate.calls(message).outcomes[0].replayed is False


def test_numbers_and_repeated_members_reach_the_gate_as_they_were_written(gate: Gate) -> None:
    arguments = '{"order_id":"ord_4821","amount_cents":1e3,"currency":"USD","reason":"damaged"}'
    text = json.dumps(assistant(call("c1", "create_refund", arguments)))
    assert gate.calls(text).outcomes[0].result["amount_cents"] == 1000
    twice = arguments.replace("{", '{"amount_cents":1,', 1)
    [refused] = gate.calls(assistant(call("c1", "create_refund", twice))).outcomes
    assert refused.code == "invalid_json"
    block = '[{"type":"tool_use","id":"t","name":"create_refund","input":' + twice + "}]"
    [refused] = gate.calls(block, dialect="anthropic").outcomes
    assert refused.code == "invalid_json", "raw text is not read on the way"


def test_a_stream_is_a_message_and_what_is_odd_about_it_is_told(gate: Gate) -> None:
    look_up = {"name": "get_order", "arguments": '{"order_id":"ord_4821"}'}
    pieces = [{"index": 0, "id": id, "function": look_up} for id in ("c1", "c2")]
    events = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    turn = gate.calls({"stream": events})
    assert [outcome.ok for outcome in turn.outcomes] == [True, True]
    assert [(warning.at, warning.code) for warning in turn.warnings] == [("/1", "stream")]
    assert gate.calls(assistant(call("c1", "get_order", {"order_id": "ord_4821"}))).warnings == ()


def test_a_model_that_called_nothing_gets_nothing(gate: Gate) -> None:
    assert gate.execute({"role": "assistant", "content": "Done."}) == []


def test_the_tools_are_those_that_the_model_api_takes(gate: Gate) -> None:
    tools = gate.tools()
    names = sorted(tool["function"]["name"] for tool in tools)
    assert "create_refund" in names
    assert json.loads(json.dumps(tools)) == tools
    assert sorted(tool["name"] for tool in gate.tools("anthropic")) == names


def test_tags_bound_the_list_and_the_calls_alike(gate: Gate, shop: Shop) -> None:
    def names(tools: list[dict[str, Any]]) -> list[str]:
        return sorted(tool["function"]["name"] for tool in tools)

    message = assistant(call("c", "get_order", {"order_id": "ord_4821"}))
    assert names(gate.tools(tags=["orders", "documents"])) == ["get_order", "read_document"]
    assert gate.tools(tags="there-is-no-such-tag") == []
    assert gate.calls(message).outcomes[0].ok and gate.calls(message, tags="orders").outcomes[0].ok
    with Gate(shop.url, tags=["refunds"]) as desk:
        assert names(desk.tools()) == ["create_refund", "find_refund", "get_refund_status"]
        assert desk.calls(message).outcomes[0].code == "unknown_tool"
        [told] = desk.execute(message, dry_run=True)
        assert "unknown_tool" in told["content"]
        assert desk.calls(message, tags=["refunds", "orders"]).outcomes[0].ok


def test_tags_that_say_nothing_are_refused_here_and_ones_that_are_none_there(gate: Gate) -> None:
    message = assistant(call("c", "get_order", {"order_id": "ord_4821"}))
    with pytest.raises(ValueError, match="at least one"):
        gate.calls(message, tags=[])
    for wrong in ("", "orders,refunds", "orders&tag=refunds"):
        with pytest.raises(GateError) as raised:
            gate.calls(message, tags=wrong)
        assert raised.value.code == "bad_tag"


def test_a_broken_message_is_a_problem_with_its_place(gate: Gate) -> None:
    with pytest.raises(GateError) as raised:
        gate.execute({"role": "user", "content": "Refund my order."})
    problem = raised.value
    assert (problem.status, problem.code, problem.line) == (400, "broken_message", 1)
    assert problem.type == "urn:toolgate:problem:broken_message"
    assert "assistant" in problem.detail and problem.hint and problem.answered is None
    assert problem.code in str(problem)


def test_an_operation_is_for_one_call(gate: Gate) -> None:
    two = assistant(
        call("c1", "get_order", {"order_id": "ord_4821"}), call("c2", "get_order", {"order_id": "ord_1001"})
    )
    with pytest.raises(GateError) as raised:
        gate.execute(two, operation="op-1")
    assert raised.value.code == "bad_header"
    [refused] = gate.calls(assistant(two["tool_calls"][0]), operation="op-1").outcomes
    assert refused.code == "invalid_call", "the contract takes no operation"


def test_many_at_once_from_one_async_client(shop: Shop) -> None:
    async def all_at_once() -> list[Outcome]:
        async with AsyncGate(shop.url) as gate:
            assert "create_refund" in [tool["function"]["name"] for tool in await gate.tools()]
            message = assistant(call("c", "create_refund", refund(700)))
            turns = await asyncio.gather(*(gate.calls(message) for _ in range(8)))
            assert await gate.execute({"role": "assistant", "content": "Done."}) == []
            return [turn.outcomes[0] for turn in turns]

    outcomes = asyncio.run(all_at_once())
    assert all(outcome.ok and outcome.effect == "done" for outcome in outcomes)
    assert len({outcome.result["refund_id"] for outcome in outcomes}) == 1, "one refund, whoever asked first"
    assert sum(not outcome.replayed for outcome in outcomes) == 1


def test_a_token_is_shown_by_nothing() -> None:
    gate = Gate("http://127.0.0.1:9", token="tg_secret_token")
    assert "secret" not in repr(gate)
    with pytest.raises(ValueError, match="http"):
        Gate("127.0.0.1:8787")
