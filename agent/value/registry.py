"""The ways to value a state by name."""

from __future__ import annotations

from agent.value import Value
from agent.value.blend import Blend
from agent.value.checklist import Checklist
from agent.value.debate import Debate
from agent.value.judge import Judge
from agent.value.tests import PassingTests

__all__ = ["VALUES"]

VALUES: dict[str, type[Value]] = {
    "blend": Blend,
    "checklist": Checklist,
    "debate": Debate,
    "judge": Judge,
    "tests": PassingTests,
}
"""A value's dataclass is the schema of its settings; those that have a field `model` ask one."""
