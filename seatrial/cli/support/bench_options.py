"""The options of `seatrial bench`, in groups as its help shows them; most are those of `seatrial-load`."""

from __future__ import annotations

import inspect
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial_load.documents.options import OPTIONS, OUTPUT, PROMPTS, TARGET

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.options import CommandOption

Spec = Annotated[Path | None, typer.Argument(metavar="[SPEC]", help="The endpoint's YAML file.")]

Environment = Annotated[
    str | None,
    typer.Option(
        "--environment", "-e", metavar="ENV", help="With SPEC: name of the environment.", rich_help_panel=TARGET
    ),
]
Environments = Annotated[
    Path | None,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Folder of environments; `environments` beside the specs'.",
        rich_help_panel=TARGET,
    ),
]
Tokenizer = Annotated[
    Path | None,
    typer.Option("--tokenizer", help="tokenizer.json, for synthetic prompts of exact length.", rich_help_panel=PROMPTS),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="RESULT",
        help="Earlier result to compare with: file or s3:// URI.",
        rich_help_panel=OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write the report to this folder.", rich_help_panel=OUTPUT),
]


def takes_trial_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `written` the options of a trial, which it gets there by their flags."""
    names = {flag.strip("-").replace("-", "_"): flag for flag in OPTIONS}

    @wraps(command)
    def run(**given: object) -> None:
        options = {flag: given.pop(name) for name, flag in names.items()}
        command(**given, written={flag: value for flag, value in options.items() if value not in (None, [], ())})

    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())
    place = next(number for number, each in enumerate(own) if each.name == "written")
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(OPTIONS[flag]))
        for name, flag in names.items()
    ]
    parameters = [*own[:place], *added, *own[place + 1 :]]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def _annotation(row: CommandOption) -> object:
    option = typer.Option(row.flag, metavar=row.option.metavar or None, help=row.words(), rich_help_panel=row.group)
    return Annotated[(list[str] if row.option.repeats else row.kind) | None, option]
