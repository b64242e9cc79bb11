"""The options of `seatrial bench`, in groups as its help shows them; most are those of `seatrial-load`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial_load.cli.options import OPTIONS, OUTPUT, PROMPTS, TARGET, ArrivalChoice

if TYPE_CHECKING:
    from typer.models import OptionInfo


def _option(flag: str) -> OptionInfo:
    row = OPTIONS[flag]
    made: OptionInfo = typer.Option(flag, metavar=row.metavar or None, help=row.help, rich_help_panel=row.group)
    return made


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
Url = Annotated[str | None, _option("--url")]
Model = Annotated[str | None, _option("--model")]
ApiKeyVariable = Annotated[str | None, _option("--api-key-variable")]
Slo = Annotated[list[str] | None, _option("--slo")]
MaxErrorRate = Annotated[float | None, _option("--max-error-rate")]
Gate = Annotated[int | None, _option("--gate")]
UsdPerHour = Annotated[float | None, _option("--usd-per-hour")]

Levels = Annotated[str | None, _option("--levels")]
Search = Annotated[Literal["sweep", "adaptive", "every_level"] | None, _option("--search")]
Goal = Annotated[Literal["knee", "max_concurrency", "max_goodput"] | None, _option("--goal")]
Requests = Annotated[int | None, _option("--requests")]
Rate = Annotated[str | None, _option("--rate")]
Arrival = Annotated[ArrivalChoice, _option("--arrival")]
Smoothness = Annotated[float | None, _option("--smoothness")]
LevelSeconds = Annotated[float | None, _option("--level-seconds")]
Connections = Annotated[int | None, _option("--connections")]
Api = Annotated[Literal["invoke", "openai"] | None, _option("--api")]
Protocol = Annotated[Literal["jumpstart-2024"] | None, _option("--protocol")]
Workers = Annotated[int | None, _option("--workers")]

InputTokens = Annotated[int, _option("--input-tokens")]
InputTokensStddev = Annotated[float, _option("--input-tokens-stddev")]
OutputTokens = Annotated[int, _option("--output-tokens")]
OutputTokensStddev = Annotated[float, _option("--output-tokens-stddev")]
SharedPrefixTokens = Annotated[int, _option("--shared-prefix-tokens")]
PrefixGroups = Annotated[int, _option("--prefix-groups")]
Turns = Annotated[int, _option("--turns")]
TurnsStddev = Annotated[float, _option("--turns-stddev")]
TurnDelay = Annotated[float, _option("--turn-delay")]
TurnDelayStddev = Annotated[float, _option("--turn-delay-stddev")]
Prompts = Annotated[Path | None, _option("--prompts")]
Trace = Annotated[Path | None, _option("--trace")]
Speed = Annotated[float, _option("--speed")]
Tokenizer = Annotated[
    Path | None,
    typer.Option("--tokenizer", help="tokenizer.json, for synthetic prompts of exact length.", rich_help_panel=PROMPTS),
]

Budget = Annotated[float | None, _option("--budget")]
BudgetUsd = Annotated[float | None, _option("--budget-usd")]
Timeout = Annotated[float | None, _option("--timeout")]
StallTimeout = Annotated[float | None, _option("--stall-timeout")]
Retries = Annotated[int | None, _option("--retries")]

Records = Annotated[Path | None, _option("--records")]
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
