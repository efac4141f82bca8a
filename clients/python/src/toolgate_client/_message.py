"""A model's message, as the raw JSON in which it is handed on, and the dialect that it is written in.

What the model wrote must reach the gate as it is: the gate refuses what two readers could understand differently, and
it can only do so if nobody has read the text before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

Dialect = Literal[
    "openai-chat",
    "openai-strict",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock-converse",
    "ollama",
    "mcp",
]


@runtime_checkable
class Model(Protocol):
    """A pydantic model, as the official packages have them."""

    def model_dump_json(self, *, exclude: Any, by_alias: bool, exclude_unset: bool, warnings: bool) -> str: ...

    def model_dump(self, *, mode: Any, exclude: Any, by_alias: bool, exclude_unset: bool, warnings: bool) -> Any: ...


Message = Mapping[str, Any] | Sequence[Any] | Model | str | bytes
"""A message: a dict or a list, a model of the packages ``openai`` or ``anthropic``, or its raw JSON text."""

_PACKAGES: dict[str, Dialect] = {"openai": "openai-chat", "anthropic": "anthropic"}

#: What ``parse`` of the package ``openai`` adds beside what the provider sent.
_PARSED_CALL = {"function": {"parsed_arguments"}}
_PARSED_MESSAGE = {"parsed": True, "tool_calls": {"__all__": _PARSED_CALL}}
_PARSED_ITEM = {"parsed_arguments": True}
_PARSED = {
    "choices": {"__all__": {"message": _PARSED_MESSAGE}},
    "output": {"__all__": _PARSED_ITEM},
    **_PARSED_MESSAGE,
    **_PARSED_CALL,
    **_PARSED_ITEM,
}


def raw(message: Message) -> bytes:
    """The JSON text of a message: the one that was given, or one that holds what was set and nothing else."""
    if isinstance(message, (str, bytes)):
        # It is put into the body as it is, so it must not be able to end there and go on with members of its own.
        try:
            text = message.encode() if isinstance(message, str) else message
            json.loads(text.decode())
        except ValueError as error:
            raise ValueError("the message is a text, and no JSON; pass on what the provider sent") from error
        return text
    if isinstance(message, Model):
        return message.model_dump_json(exclude=_PARSED, by_alias=True, exclude_unset=True, warnings=False).encode()
    if isinstance(message, (Mapping, Sequence)):
        return json.dumps(message, default=_plain, allow_nan=False, separators=(",", ":")).encode()
    raise TypeError(f"a message is a dict, a list, a model or JSON text, not {type(message).__name__}")


def dialect_of(message: Message, otherwise: Dialect) -> Dialect:
    """The dialect of a message whose type says it; else ``otherwise``."""
    for part in (message, *_first_parts(message)):
        for kind in type(part).__mro__:
            package = kind.__module__.partition(".")[0]
            if package in _PACKAGES:
                known = _known(part, _PACKAGES[package])
                # How its tools were declared, the type of a chat message does not say.
                strict = known == "openai-chat" and otherwise == "openai-strict"
                return otherwise if strict else known
    return otherwise


def _first_parts(message: Message) -> Sequence[Any]:
    """Blocks may be models where what holds them is a list or a dict."""
    content = message.get("content") if isinstance(message, Mapping) else message
    return content if isinstance(content, Sequence) and not isinstance(content, (str, bytes)) else ()


def _known(part: Any, dialect: Dialect) -> Dialect:
    if dialect == "openai-chat" and ".responses." in type(part).__module__:
        return "openai-responses"
    if dialect == "openai-chat" and not any(hasattr(part, name) for name in ("choices", "tool_calls", "function")):
        kind = type(part)
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is no message of a chat completion")
    return dialect


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.model_dump(mode="json", exclude=_PARSED, by_alias=True, exclude_unset=True, warnings=False)
    raise TypeError(f"{type(value).__name__} is no part of a message")
