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
    str | None, typer.Option("--model", help="With --url: model name in requests.", rich_help_panel=_TARGET)
]
ApiKeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-variable",
        metavar="NAME",
        help="With --url: environment variable with the API key.",
        rich_help_panel=_TARGET,
    ),
]
Slo = Annotated[
    list[str] | None,
    typer.Option(
        "--slo",
        metavar="BOUND",
        help="With --url: objective, as in ttft_ms.p95=500; may be repeated.",
        rich_help_panel=_TARGET,
    ),
]
MaxErrorRate = Annotated[
    float | None,
    typer.Option(
        "--max-error-rate",
        metavar="SHARE",
        help="With --url: largest share of failed requests per level. Default: 0.01.",
        rich_help_panel=_TARGET,
    ),
]
Gate = Annotated[
    int | None,
    typer.Option(
        "--gate",
        help="With --url: concurrency at which the SLO must hold. Default: the lowest level.",
        rich_help_panel=_TARGET,
    ),
]
UsdPerHour = Annotated[
    float | None,
    typer.Option("--usd-per-hour", help="With --url: price of the server, USD/h.", rich_help_panel=_TARGET),
]

Levels = Annotated[
    str | None, typer.Option("--levels", help="Concurrency per copy, as in 1,2,4.", rich_help_panel=_LOAD)
]
Search = Annotated[
    Literal["sweep", "adaptive"] | None,
    typer.Option(
        "--search",
        help="Measure every level, or choose levels between the lowest and the highest.",
        rich_help_panel=_LOAD,
    ),
]
Goal = Annotated[
    Literal["knee", "max_concurrency", "max_goodput"] | None,
    typer.Option("--goal", help="Goal of an adaptive search.", rich_help_panel=_LOAD),
]
Requests = Annotated[int | None, typer.Option("--requests", help="Measured requests per level.", rich_help_panel=_LOAD)]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate", help="Open loop: requests per second, as in 1,2,4; for a ramp: start,end.", rich_help_panel=_LOAD
    ),
]
Arrival = Annotated[
    Literal["poisson", "constant", "ramp"],
    typer.Option("--arrival", help="With --rate: arrival process.", rich_help_panel=_LOAD),
]
LevelSeconds = Annotated[
    float | None,
    typer.Option(
        "--level-seconds", metavar="S", help="With --rate: duration of a level. Default: 30.", rich_help_panel=_LOAD
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "--connections", help="With --rate or --trace: most requests in flight. Default: 512.", rich_help_panel=_LOAD
    ),
]
Protocol = Annotated[
    Literal["jumpstart-2024"] | None,
    typer.Option("--protocol", help="Protocol of the JumpStart article of January 2024.", rich_help_panel=_LOAD),
]
Workers = Annotated[int | None, typer.Option("--workers", help="Number of load processes.", rich_help_panel=_LOAD)]

InputTokens = Annotated[
    int, typer.Option("--input-tokens", help="With --url: prompt length.", rich_help_panel=_PROMPTS)
]
OutputTokens = Annotated[
    int, typer.Option("--output-tokens", help="With --url: answer length.", rich_help_panel=_PROMPTS)
]
Prompts = Annotated[Path | None, typer.Option("--prompts", help="JSONL file of prompts.", rich_help_panel=_PROMPTS)]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", help="Trace to replay: CSV or JSONL.", rich_help_panel=_PROMPTS),
]
Speed = Annotated[
    float,
    typer.Option(
        "--speed", help="With --trace: replay speed; 2 is twice as fast as recorded.", rich_help_panel=_PROMPTS
    ),
]
Tokenizer = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer", help="tokenizer.json, for synthetic prompts of exact length.", rich_help_panel=_PROMPTS
    ),
]

Budget = Annotated[
    float | None, typer.Option("--budget", metavar="MINUTES", help="Time limit of the trial.", rich_help_panel=_LIMITS)
]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", help="Cost limit of the trial.", rich_help_panel=_LIMITS)
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="S", help="Time limit of a request.", rich_help_panel=_LIMITS)
]
StallTimeout = Annotated[
    float | None,
    typer.Option(
        "--stall-timeout", metavar="S", help="Longest gap between two parts of a stream.", rich_help_panel=_LIMITS
    ),
]
Retries = Annotated[
    int | None,
    typer.Option("--retries", help="Retries of throttled or not ready requests.", rich_help_panel=_LIMITS),
]

Records = Annotated[
    Path | None,
    typer.Option("--records", metavar="FILE", help="Write every request to this JSONL file.", rich_help_panel=_OUTPUT),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="RESULT",
        help="Earlier result to compare with: file or s3:// URI.",
        rich_help_panel=_OUTPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="Write the report to this folder.", rich_help_panel=_OUTPUT),
]
