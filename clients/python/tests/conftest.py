"""A real gate for each test that wants one: `toolgate serve` over a copy of the example shop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate_client import Gate

CHECKOUT = Path(__file__).resolve().parents[3]


class Shop:
    """The example's folder, and the command that works on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self._serving: subprocess.Popen[str] | None = None

    def toolgate(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary(), *words], capture_output=True, text=True, timeout=30)

    def serve(self) -> None:
        command = [binary(), "serve", str(self.folder), "--port", "0", "--json"]
        self._serving = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._serving.stdout is not None
        self.url = json.loads(self._serving.stdout.readline())["listening"]

    def stop(self) -> int:
        assert self._serving is not None
        self._serving.send_signal(signal.SIGTERM)
        return self._serving.wait(timeout=30)

    def kill(self) -> None:
        if self._serving is not None and self._serving.poll() is None:
            self._serving.kill()
            self._serving.wait(timeout=30)


def binary() -> str:
    return os.environ["TOOLGATE_BIN"]


@pytest.fixture
def folder(tmp_path: Path) -> Shop:
    """The shop before it is served."""
    copy = tmp_path / "shop"
    shutil.copytree(CHECKOUT / "examples" / "shop", copy, ignore=shutil.ignore_patterns("state"))
    return Shop(copy)


@pytest.fixture
def shop(folder: Shop) -> Iterator[Shop]:
    folder.serve()
    yield folder
    folder.kill()


@pytest.fixture
def gate(shop: Shop) -> Iterator[Gate]:
    with Gate(shop.url) as gate:
        yield gate


def refund(amount_cents: Any, order_id: str = "ord_4821") -> dict[str, Any]:
    """The arguments of a refund."""
    return {"order_id": order_id, "amount_cents": amount_cents, "currency": "USD", "reason": "damaged"}


def call(id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call as OpenAI's API has it."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}
