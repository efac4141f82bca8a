"""What reaches the gate is what the provider sent, whichever way a message is held."""

from __future__ import annotations

import json
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
from conftest import assistant, call
from openai.types.chat import ParsedChatCompletion

from toolgate_client._message import dialect_of, raw

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1741569952,
    "model": "gpt-5.1",
    "choices": [
        {
            "index": 0,
            "message": {
                **assistant(call("c1", "get_order", {"order_id": "ord_1"})),
                "refusal": None,
                "annotations": [],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99},
    "provider_extra": {"kept": True},
}

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-4-5",
    "content": [
        {"type": "text", "text": "I will look."},
        {"type": "tool_use", "id": "t1", "name": "get_order", "input": {"order_id": "ord_1", "n": 9007199254740993}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 472, "output_tokens": 91},
}


def sent(message: Any) -> Any:
    return json.loads(raw(message))


def as_openai(data: dict[str, Any]) -> openai.types.chat.ChatCompletion:
    """As the package makes it of a response: without validation."""
    return openai.types.chat.ChatCompletion.construct(**data)


def as_anthropic(data: dict[str, Any]) -> anthropic.types.Message:
    return anthropic.types.Message.construct(**data)


@pytest.mark.parametrize("make", [as_openai, openai.types.chat.ChatCompletion.model_validate])
def test_a_completion_is_handed_on_with_all_that_came_and_nothing_else(make: Any) -> None:
    completion = make(COMPLETION)
    assert sent(completion) == COMPLETION
    assert sent(completion.choices[0].message) == COMPLETION["choices"][0]["message"]
    assert dialect_of(completion, "mcp") == "openai-chat"
    assert dialect_of(completion.choices[0].message, "mcp") == "openai-chat"
    assert dialect_of(completion.choices[0].message.tool_calls, "mcp") == "openai-chat"


def test_a_completion_of_a_gate_in_strict_mode_is_read_in_strict_mode() -> None:
    assert dialect_of(as_openai(COMPLETION), "openai-strict") == "openai-strict"
    assert dialect_of(as_anthropic(MESSAGE), "openai-strict") == "anthropic"


@pytest.mark.parametrize("make", [as_anthropic, anthropic.types.Message.model_validate])
def test_a_message_of_anthropic_is_handed_on_with_all_that_came_and_nothing_else(make: Any) -> None:
    message = make(MESSAGE)
    assert sent(message) == MESSAGE
    assert dialect_of(message, "openai-chat") == "anthropic"
    # Its blocks, alone or in the form in which they go back into the conversation.
    assert sent(message.content) == MESSAGE["content"]
    assert dialect_of(message.content, "openai-chat") == "anthropic"
    turn = {"role": "assistant", "content": message.content}
    assert sent(turn) == {"role": "assistant", "content": MESSAGE["content"]}
    assert dialect_of(turn, "openai-chat") == "anthropic"


def test_what_the_package_parsed_of_a_call_is_not_sent_as_if_the_model_had_written_it() -> None:
    data = json.loads(json.dumps(COMPLETION))
    data["choices"][0]["message"]["parsed"] = {"x": 1}
    data["choices"][0]["message"]["tool_calls"][0]["function"]["parsed_arguments"] = {"order_id": "ord_1"}
    parsed: ParsedChatCompletion[None] = ParsedChatCompletion.construct(**data)
    assert sent(parsed) == COMPLETION
    assert sent(parsed.choices[0].message) == COMPLETION["choices"][0]["message"]


def test_raw_text_is_not_touched() -> None:
    text = '{ "tool_calls": [ {"id":"c","function":{"name":"n","arguments":"{}"}, "id":"c"} ], "x": 1.0 }'
    assert raw(text) == text.encode()
    assert raw(text.encode()) == text.encode()
    assert dialect_of(text, "anthropic") == "anthropic"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure!",
        '{"a":1},"dry_run":false',
        "{} {}",
        '{"a":1}}',
        b'{"a":"\xff"}',
        '{"a":1}'.encode("utf-16"),
        "\ud800",
    ],
)
def test_text_that_could_end_before_it_ends_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        raw(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(value: float) -> None:
    with pytest.raises(ValueError):
        raw({"role": "assistant", "x": value})


def test_what_is_no_message_is_told_at_once() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        raw(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="object is no part"):
        raw({"role": object()})
    with pytest.raises(TypeError, match="Embedding is no message of a chat completion"):
        dialect_of(openai.types.Embedding.construct(embedding=[]), "openai-chat")


def test_a_response_of_openai_and_its_items_say_their_dialect() -> None:
    call = openai.types.responses.ResponseFunctionToolCall(
        type="function_call", call_id="c", name="n", arguments='{"a": 1.0}'
    )
    response = openai.types.responses.Response.construct(id="r", output=[call])
    assert dialect_of(response, "openai-chat") == "openai-responses"
    assert dialect_of(call, "openai-chat") == dialect_of([call], "openai-chat") == "openai-responses"
    sent = {"type": "function_call", "call_id": "c", "name": "n", "arguments": '{"a": 1.0}'}
    assert json.loads(raw([call])) == [sent]
    parsed = openai.types.responses.ParsedResponseFunctionToolCall(**sent, parsed_arguments={"a": 1.0})
    assert json.loads(raw(parsed)) == sent


def test_a_dict_says_nothing_of_its_dialect() -> None:
    assert dialect_of(assistant(), "openai-chat") == "openai-chat"
    assert dialect_of({"content": []}, "anthropic") == "anthropic"
