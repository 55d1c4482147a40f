"""The values by name."""

from __future__ import annotations

from agent.evaluate.value import Value
from agent.evaluate.value.blend import Blend
from agent.evaluate.value.checklist import Checklist
from agent.evaluate.value.debate import Debate
from agent.evaluate.value.judge import Judge
from agent.evaluate.value.prm import Prm
from agent.evaluate.value.tests import PassingTests

VALUES: dict[str, type[Value]] = {
    "blend": Blend,
    "checklist": Checklist,
    "debate": Debate,
    "judge": Judge,
    "prm": Prm,
    "tests": PassingTests,
}
"""A value's dataclass is the schema of its settings; a value with a field `model` asks that model."""
