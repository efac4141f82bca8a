"""What is raised where there is no answer. A call that was refused is an answer, and raises nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._shapes import Problem, Turn


class ToolgateError(Exception):
    """Whatever this package raises of its own."""


class Unreachable(ToolgateError):
    """The gate gave no answer, and nothing was done: the request was not sent, or it asked for nothing to be done.

    It may be sent again.
    """


class OutcomeUnknown(ToolgateError):
    """The request was sent, and its answer never came: its calls may have run.

    Send the very same message again once the gate is there: what it has done is answered from its ledger and not done
    twice, unless a contract says otherwise. A message that the model wrote anew is another message.
    """


class GateError(ToolgateError):
    """The gate said no to the request as a whole, as an RFC 9457 problem. The fields are those of the problem.

    ``answered`` holds what became of the calls that had an answer all the same, where the gate failed in between.
    """

    status: int
    code: str
    title: str
    detail: str
    type: str
    hint: str | None
    line: int | None
    column: int | None
    problems: tuple[Problem, ...]
    answered: Turn | None
    body: dict[str, Any]

    def __init__(
        self,
        status: int,
        body: dict[str, Any],
        problems: tuple[Problem, ...] = (),
        answered: Turn | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))
        self.title = str(body.get("title", ""))
        self.detail = str(body.get("detail", ""))
        self.type = str(body.get("type", "about:blank"))
        self.hint = body.get("hint")
        self.line = body.get("line")
        self.column = body.get("column")
        self.problems = problems
        self.answered = answered
        hint = f" ({self.hint})" if self.hint else ""
        super().__init__(f"{self.code or status}: {self.detail or self.title}{hint}")
