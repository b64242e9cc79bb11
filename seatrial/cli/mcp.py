"""`seatrial mcp`: the commands that change nothing, as tools of an assistant (Model Context Protocol)."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any, Final, get_args

from typer.models import ArgumentInfo, OptionInfo

from seatrial import __version__
from seatrial.cli.alternatives import compare_instances_command, recipes_command
from seatrial.cli.audit import audit_command
from seatrial.cli.diff import diff_command
from seatrial.cli.doctor import doctor_command
from seatrial.cli.plan import plan_command
from seatrial.cli.predict import predict_command
from seatrial.cli.simulate import screen_lines, simulate_command
from seatrial.cli.support.model_options import OPTIONS as OF_A_MODEL
from seatrial.cli.validate import validate_command
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place
from seatrial_lint.cli.app import check_command, rules_command
from seatrial_lint.cli.lint import lint_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp.server import ServerRequestContext
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool
    from pydantic import BaseModel

    from seatrial_base.frozen_model import FrozenModel

INSTRUCTIONS: Final = (
    "Every tool only reads; paths are relative to the repository. Edit a spec, then: validate, plan, plan_check, diff. "
    "`seatrial plan --write` writes locks. `rules` explains the ID of a message, as SEA206."
)
_PLACE: Final = ("environment", "environments")


@dataclass(frozen=True, slots=True)
class _Tool:
    """A command as a tool.

    Attributes:
        options: The parameters that may be given beside the arguments; listed, lest a new option that writes is one.
        by: The option that makes it a tool of its own: a flag is always passed, any other must be given.
    """

    command: Callable[..., None]
    options: Sequence[str] = ()
    by: str = ""


_MODEL: Final = (*_PLACE, *(name for name in OF_A_MODEL if name != "save"))
_ALLOWED: Final = ("accept_slo_miss", "allow_unknown_price")
TOOLS: Final = {
    "validate": _Tool(validate_command, _PLACE),
    "plan": _Tool(plan_command, (*_MODEL, *_ALLOWED)),
    "plan_why": _Tool(plan_command, (*_MODEL, *_ALLOWED), by="why"),
    "plan_check": _Tool(plan_command, _PLACE, by="check"),
    "compare_instances": _Tool(compare_instances_command, _MODEL),
    "recipes": _Tool(recipes_command, (*_MODEL, "every")),
    "predict": _Tool(predict_command, ("engine", "load", "form", "strict")),
    "simulate": _Tool(
        simulate_command, (*_PLACE, "traffic", "days", "seed", "instance_start_s", "copy_start_s", "quota")
    ),
    "diff": _Tool(diff_command, (*_PLACE, "against", "base", "fix_forward")),
    "lint": _Tool(
        lint_command, ("engine", "version", "instance_type", "ami_version", "startup_timeout_s", "skip_others")
    ),
    "check": _Tool(check_command, ("region",)),
    "audit": _Tool(audit_command, (*_PLACE, "at", "records", "public_key")),
    "doctor": _Tool(doctor_command, (*_PLACE, "region", "why", "reason", "log", "image", "instance_type")),
    "rules": _Tool(rules_command),
}
"""The tools by name, that of the command with `by`; each answers with the JSON of its command."""


def _documents() -> dict[str, type[BaseModel]]:
    """Return the models of what tools answer, where that has one."""
    from pydantic import create_model

    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CopyStart, Simulation

    return {"plan": create_model("PlanWithStart", __base__=Plan, start=(CopyStart, ...)), "simulate": Simulation}


def mcp_command() -> None:
    """Serve planning, checks and diagnoses to an assistant over standard input and output; nothing is written.

    Clients start it in the repository. It needs the extra `mcp`.
    """
    import anyio
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
    from mcp.types import ListToolsResult

    folder, documents = Path.cwd(), _documents()
    tools = ListToolsResult(tools=[_described(name, documents.get(name)) for name in TOOLS])
    # Messages go around the guard of the output: JSON escapes what a terminal would obey.
    sys.stdout = sys.__stdout__

    async def listed(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return tools

    async def called(_: ServerRequestContext[Any], request: CallToolRequestParams) -> CallToolResult:
        return await _answer(folder, request.name, request.arguments or {})

    async def serve() -> None:
        server = Server(
            "seatrial", version=__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
        )
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


async def _answer(folder: Path, name: str, given: Mapping[str, Any]) -> CallToolResult:
    """Run a tool's command in a process of its own, which a crash, a signal or a cancelled call ends alone."""
    import anyio
    from mcp.types import CallToolResult, TextContent

    from seatrial.documents.simulation import Simulation

    def refused(text: str) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=text)], is_error=True)

    if name not in TOOLS:
        return refused(f"no tool {name}; the tools are {', '.join(TOOLS)}")
    try:
        # -P: a module of the repository is not imported in place of one of Seatrial's.
        command = [sys.executable, "-P", "-m", "seatrial.cli", *_arguments(folder, name, given)]
        done = await anyio.run_process(command, cwd=folder, stdin=DEVNULL, check=False)
    except (SpecError, OSError, ValueError) as error:  # the last two: a text that is too long, or has a zero byte
        return refused(str(error))
    shown, notes = done.stdout.decode(), done.stderr.decode().strip()
    try:
        document = json.loads(shown)
    except ValueError:
        return refused(notes or shown)
    if name == "simulate":  # minute by minute, a week has 380 KB
        shown = "\n".join(screen_lines(Simulation.model_validate(document)))
    return CallToolResult(
        content=[TextContent(text=part) for part in (shown, notes) if part],
        structured_content=document if isinstance(document, dict) else {"items": document},
    )


def _described(name: str, document: type[BaseModel] | None) -> Tool:
    from mcp.types import Tool, ToolAnnotations
    from pydantic import TypeAdapter

    tool = TOOLS[name]
    (text,) = [info.help for each, _, info, _ in _parameters(tool) if each == tool.by] or [inspect.getdoc(tool.command)]
    # One spec has one document, a list of specs a list of them.
    either: Any = document and document | dict[str, list[document]]  # type: ignore[valid-type]
    return Tool(
        name=name,
        description=(text or "").partition("\n\n")[0].partition("; exit ")[0].replace("\n", " "),
        input_schema=_input_model(tool).model_json_schema(),
        output_schema=None if document is None else {"type": "object", **TypeAdapter(either).json_schema()},
        annotations=ToolAnnotations(read_only_hint=True),
    )


def _parameters(tool: _Tool) -> Iterator[tuple[str, type, ArgumentInfo | OptionInfo, object]]:
    """Yield name, type, facts and default of what a tool takes, as its command declares it."""
    for name, parameter in inspect.signature(tool.command, eval_str=True).parameters.items():
        kind, info = get_args(parameter.annotation)
        if isinstance(info, ArgumentInfo) or name in tool.options or name == tool.by:
            yield name, kind, info, parameter.default


def _input_model(tool: _Tool) -> type[FrozenModel]:
    from pydantic import Field, create_model

    from seatrial_base.frozen_model import FrozenModel

    fields: dict[str, Any] = {
        name: (
            kind,
            Field(... if default is inspect.Parameter.empty or name == tool.by else default,
                  description=info.help, ge=info.min, le=info.max),
        )
        for name, kind, info, default in _parameters(tool)
        if not (name == tool.by and kind is bool)
    }  # fmt: skip
    return create_model("Input", __base__=FrozenModel, **fields)


def _arguments(folder: Path, name: str, given: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a tool's command.

    Raises:
        SpecError: With every problem: SEA590 for a path that leads out of the folder, and what a tool does not take, or
            not so, as of a spec (SEA104 to SEA107).
    """
    from seatrial.specs.load import validated
    from seatrial.specs.yaml_source import Document

    tool = TOOLS[name]
    values, problems = validated(_input_model(tool), Document("arguments", dict(given), {}, {}))
    if values is None:
        raise SpecError(problems)
    line, arguments = [name.removesuffix(f"_{tool.by}").replace("_", "-"), "--format=json"], []
    for each_name, _kind, info, _default in _parameters(tool):
        is_argument, value = isinstance(info, ArgumentInfo), getattr(values, each_name, True)
        # Typer keeps the first spelling as the default of what stands in `Annotated`.
        spellings = (str(info.default), *(info.param_decls or ()), f"--{each_name.replace('_', '-')}")
        option = next(each for each in spellings if each.startswith("--"))
        for each in value if isinstance(value, list) else [value]:
            # What is declared as text for people is no path; anything else may be one, also the name of an endpoint.
            if isinstance(each, str | Path) and info.metavar != "TEXT" and not _is_within(folder, each):
                message = f"{each} is not within {folder.as_posix()}, where the server was started"
                problems.append(
                    Finding("SEA590", Place("arguments", field=each_name), message, "give a path within it")
                )
            if is_argument and each is not None:
                arguments.append(str(each))
            elif isinstance(each, bool):
                line += [option] * each
            elif each is not None:
                line.append(f"{option}={each}")
    if problems:
        raise SpecError(problems)
    return [*line, "--", *arguments]


def _is_within(folder: Path, value: str | Path) -> bool:
    try:
        return follow_links(folder / value).is_relative_to(follow_links(folder))
    except OSError:
        # A link to itself, or a text too long for a name: the command says what is wrong with it.
        return True
