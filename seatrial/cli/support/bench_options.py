"""The options of `seatrial bench`, in groups as its help shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

_TARGET, _LOAD, _PROMPTS, _LIMITS, _OUTPUT = "Target", "Load", "Prompts", "Limits", "Output"

Spec = Annotated[Path | None, typer.Argument(metavar="[SPEC]", help="The endpoint's YAML file.")]

Environment = Annotated[
    str | None,
    typer.Option(
        "--environment", "-e", metavar="ENV", help="With SPEC: name of the environment.", rich_help_panel=_TARGET
    ),
]
Environments = Annotated[
    Path | None,
    typer.Option(
        "--environments",
        metavar="DIR",
        help="Folder of environments; `environments` beside the specs'.",
        rich_help_panel=_TARGET,
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", help="Base URL of an OpenAI-compatible server, instead of SPEC.", rich_help_panel=_TARGET),
]
Model = Annotated[
    str | None, typer.Option("--model", help="With --url: the model of a request.", rich_help_panel=_TARGET)
]
ApiKeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-variable",
        metavar="NAME",
        help="With --url: environment variable that holds the key.",
        rich_help_panel=_TARGET,
    ),
]
Slo = Annotated[
    list[str] | None,
    typer.Option(
        "--slo",
        metavar="BOUND",
        help="With --url: a bound, as in ttft_ms.p95=500; may be repeated.",
        rich_help_panel=_TARGET,
    ),
]
MaxErrorRate = Annotated[
    float | None,
    typer.Option(
        "--max-error-rate",
        metavar="SHARE",
        help="With --url: share of a level's requests that may fail; 0.01.",
        rich_help_panel=_TARGET,
    ),
]
Gate = Annotated[
    int | None,
    typer.Option(
        "--gate",
        help="With --url: concurrency at which the bounds must hold; the lowest level.",
        rich_help_panel=_TARGET,
    ),
]
UsdPerHour = Annotated[
    float | None,
    typer.Option("--usd-per-hour", help="With --url: what the server costs.", rich_help_panel=_TARGET),
]

Levels = Annotated[
    str | None, typer.Option("--levels", help="Concurrency per copy, as in 1,2,4.", rich_help_panel=_LOAD)
]
Search = Annotated[
    Literal["sweep", "adaptive"] | None,
    typer.Option("--search", help="Measure every level, or choose between the bounds.", rich_help_panel=_LOAD),
]
Goal = Annotated[
    Literal["knee", "max_concurrency", "max_goodput"] | None,
    typer.Option("--goal", help="What an adaptive search looks for.", rich_help_panel=_LOAD),
]
Requests = Annotated[
    int | None, typer.Option("--requests", help="Measured requests of every level.", rich_help_panel=_LOAD)
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate", help="Open loop: requests per second, as in 1,2,4; of a ramp start,end.", rich_help_panel=_LOAD
    ),
]
Arrival = Annotated[
    Literal["poisson", "constant", "ramp"],
    typer.Option("--arrival", help="With --rate: how requests are timed.", rich_help_panel=_LOAD),
]
LevelSeconds = Annotated[
    float | None,
    typer.Option("--level-seconds", metavar="S", help="With --rate: time of a level; 30.", rich_help_panel=_LOAD),
]
Connections = Annotated[
    int | None,
    typer.Option("--connections", help="With --rate or --trace: most requests in flight; 512.", rich_help_panel=_LOAD),
]
Protocol = Annotated[
    Literal["jumpstart-2024"] | None,
    typer.Option("--protocol", help="Measure as that article did.", rich_help_panel=_LOAD),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Processes that load.", rich_help_panel=_LOAD)]

InputTokens = Annotated[
    int, typer.Option("--input-tokens", help="With --url: length of a prompt.", rich_help_panel=_PROMPTS)
]
OutputTokens = Annotated[
    int, typer.Option("--output-tokens", help="With --url: length of an answer.", rich_help_panel=_PROMPTS)
]
Prompts = Annotated[Path | None, typer.Option("--prompts", help="JSONL file of prompts.", rich_help_panel=_PROMPTS)]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", help="Recorded trace to replay: CSV or JSONL.", rich_help_panel=_PROMPTS),
]
Speed = Annotated[
    float, typer.Option("--speed", help="With --trace: how much faster than recorded.", rich_help_panel=_PROMPTS)
]
Tokenizer = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer", help="tokenizer.json: made-up prompts of exactly that many tokens.", rich_help_panel=_PROMPTS
    ),
]

Budget = Annotated[
    float | None, typer.Option("--budget", metavar="MINUTES", help="It ends after this.", rich_help_panel=_LIMITS)
]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", help="It ends before it costs more.", rich_help_panel=_LIMITS)
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="S", help="A request ends after this.", rich_help_panel=_LIMITS)
]
StallTimeout = Annotated[
    float | None,
    typer.Option("--stall-timeout", metavar="S", help="A silent stream ends after this.", rich_help_panel=_LIMITS),
]
Retries = Annotated[
    int | None,
    typer.Option("--retries", help="Repetitions where throttled or not ready.", rich_help_panel=_LIMITS),
]

Records = Annotated[
    Path | None,
    typer.Option("--records", metavar="FILE", help="Write every request here, as JSONL.", rich_help_panel=_OUTPUT),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="RESULT",
        help="Earlier result to compare with: a file or an s3:// URI.",
        rich_help_panel=_OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write the report here.", rich_help_panel=_OUTPUT),
]
