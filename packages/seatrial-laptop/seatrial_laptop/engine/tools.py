"""Tool calls: what a request allows the model, and the schema that a forced call must have.

A forced call is really generated, under a grammar of the tool's parameters; of several tools that may be called the
first one is. A model with random weights calls no tool by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seatrial_laptop.engine.refusals import BadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """How the model may call tools.

    Attributes:
        is_own: The model may choose to call one.
        forced: The tool that it must call; empty for none.
        parameters: JSON schema of that tool's parameters.
        is_named: The request names the tool; vLLM then ends with `stop`, else with `tool_calls`.
    """

    is_own: bool = False
    forced: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    is_named: bool = False


NO_TOOLS: Final = ToolChoice()


def read_tool_choice(document: Mapping[str, object]) -> ToolChoice:
    """Read `tools` and `tool_choice` of a chat request.

    Raises:
        BadRequest: They have the wrong type, or name no tool that is there.
    """
    tools = _functions(document.get("tools"))
    choice = document.get("tool_choice") or ("auto" if tools else "none")
    if choice in ("auto", "none"):
        return ToolChoice(is_own=choice == "auto")
    if not tools:
        raise BadRequest("When using `tool_choice`, `tools` must be set.")
    if choice == "required":
        name, parameters = next(iter(tools.items()))
        return ToolChoice(forced=name, parameters=parameters)
    named = choice.get("function") if isinstance(choice, dict) else None
    name = str(named.get("name") if isinstance(named, dict) else choice)
    if name not in tools:
        raise BadRequest("The tool specified in `tool_choice` does not match any of the specified `tools`")
    return ToolChoice(forced=name, parameters=tools[name], is_named=True)


def _functions(tools: object) -> dict[str, Mapping[str, object]]:
    if tools is None:
        return {}
    listed = tools if isinstance(tools, list) else [None]
    functions = [tool.get("function") if isinstance(tool, dict) else None for tool in listed]
    if not functions or not all(isinstance(function, dict) and "name" in function for function in functions):
        raise BadRequest("`tools` must be a list of functions with a name")
    found = (function for function in functions if isinstance(function, dict))
    return {str(function["name"]): function.get("parameters") or {"type": "object"} for function in found}
