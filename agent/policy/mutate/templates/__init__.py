"""The edit templates, one kind of defect a module; `TEMPLATES` lists them all.

A template's weights estimate how often such a fix is right when it applies. They follow, in coarse steps, what is
known about one-statement fixes in real projects (Karampatsis and Sutton, "How Often Do Single-Statement Bugs Occur?",
MSR 2020): wrong names, functions and literals first, then arguments, operators and conditions.
"""

from __future__ import annotations

from agent.policy.mutate.site import Template
from agent.policy.mutate.templates import (
    calls,
    conditions,
    constants,
    exceptions,
    insertions,
    names,
    offsets,
    operators,
    statements,
    wrapping,
)

__all__ = ["TEMPLATES"]

TEMPLATES: tuple[Template, ...] = (
    operators.another_comparison,
    operators.other_bound,
    operators.another_operator,
    operators.swap_operands,
    operators.drop_operand,
    constants.another_number,
    constants.another_boolean,
    constants.another_value,
    constants.another_default,
    constants.another_quantifier,
    constants.returned,
    offsets.off_by_one,
    offsets.off_by_name,
    offsets.sliced,
    offsets.slice_like_sibling,
    offsets.squared,
    names.another_name,
    names.another_attribute,
    names.another_key,
    names.another_target,
    names.swap_index,
    names.variable_for_expression,
    calls.another_function,
    wrapping.wrap,
    wrapping.unwrap,
    calls.swap_arguments,
    calls.drop_argument,
    calls.add_argument,
    wrapping.one_tuple,
    calls.usual_argument,
    wrapping.prepend,
    conditions.negated,
    conditions.constant_condition,
    conditions.extended,
    conditions.none_check,
    insertions.insert_call,
    insertions.insert_assignment,
    insertions.insert_reset,
    insertions.insert_jump,
    statements.delete,
    statements.swap_statements,
    statements.move,
    statements.assign_for_call,
    statements.reorder_branches,
    statements.loop_for_branch,
    exceptions.another_exception,
)
