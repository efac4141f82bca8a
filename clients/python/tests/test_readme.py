"""The agent of the README runs as it stands there, with a model that says what it should."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import openai.types.chat
import pytest
from conftest import Shop, assistant, call, refund

README = Path(__file__).resolve().parents[1] / "README.md"


def completion(message: dict[str, Any]) -> openai.types.chat.ChatCompletion:
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return openai.types.chat.ChatCompletion.model_validate(
        {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    )


class Model:
    """Calls create_refund, reads its answer, and speaks."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=self._create))

    def _create(self, *, model: str, messages: list[Any], tools: list[dict[str, Any]]) -> Any:
        assert [tool["type"] for tool in tools] == ["function"] * len(tools) != []
        self.seen = list(messages)
        if len(messages) == 1:
            return completion(assistant(call("c1", "create_refund", refund(1500))))
        return completion({"role": "assistant", "content": "I refunded 15 dollars."})


def test_the_agent_of_the_readme(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = README.read_text().split("```python\n")[1].split("```")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    model = Model()
    monkeypatch.setitem(sys.modules, "openai", types.SimpleNamespace(OpenAI=lambda: model))
    assert code.count("http://127.0.0.1:8787") == 1
    exec(compile(code.replace("http://127.0.0.1:8787", shop.url), "README.md", "exec"), {})
    assert capsys.readouterr().out == "I refunded 15 dollars.\n"
    assert [getattr(m, "role", None) or m["role"] for m in model.seen] == ["user", "assistant", "tool"]
    assert '"effect":"done"' in model.seen[2]["content"]
