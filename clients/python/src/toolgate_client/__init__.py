"""Hands a model's message to a Toolgate gate, and gives back the tool messages that answer it.

    from toolgate_client import Gate

    gate = Gate("http://127.0.0.1:8787")
    messages += gate.execute(completion.choices[0].message)

The gate decides, runs and records; this package only carries. It changes nothing of what a model wrote, and sends
nothing twice.
"""

from ._errors import GateError, OutcomeUnknown, ToolgateError, Unreachable
from ._gate import Approvals, AsyncApprovals, AsyncGate, Gate
from ._message import Dialect, Message
from ._shapes import Approval, ApprovalNotice, Outcome, Problem, Refusal, Turn

__all__ = [
    "Approval",
    "ApprovalNotice",
    "Approvals",
    "AsyncApprovals",
    "AsyncGate",
    "Dialect",
    "Gate",
    "GateError",
    "Message",
    "Outcome",
    "OutcomeUnknown",
    "Problem",
    "Refusal",
    "ToolgateError",
    "Turn",
    "Unreachable",
]
