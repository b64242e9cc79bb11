"""The options of a trial's command line: one row each, for argparse here and for typer in `seatrial bench`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

TARGET, LOAD, PROMPTS, LIMITS, OUTPUT = "Target", "Load", "Prompts", "Limits", "Output"
Value: TypeAlias = str | int | float | Path | None


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        flag: As it is written, `--level-seconds`.
        field: The attribute that it fills.
        help: One sentence for people.
        group: Where the help lists it.
        kind: The type of its value.
        metavar: What stands for the value in the help; empty for the type's.
        choices: The values that it takes; empty for all of its type.
        default: Its value where it is not written.
        repeats: Whether it may be written several times.
    """

    flag: str
    field: str
    help: str
    group: str
    kind: type[str | int | float | Path] = str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    default: Value = None
    repeats: bool = False


ArrivalChoice: TypeAlias = Literal["poisson", "gamma", "constant", "ramp"]
_ROWS: Final = (
    Option("--url", "url", "Base URL of an OpenAI-compatible server, instead of SPEC.", TARGET),
    Option("--model", "model", "With --url: model name in requests.", TARGET),
    Option(
        "--api-key-variable",
        "api_key_variable",
        "With --url: environment variable with the API key.",
        TARGET,
        metavar="NAME",
    ),
    Option(
        "--slo",
        "objectives",
        "With --url: objective, as in ttft_ms.p95=500; may be repeated.",
        TARGET,
        metavar="BOUND",
        repeats=True,
    ),
    Option(
        "--max-error-rate",
        "max_error_rate",
        "With --url: largest share of failed requests per level. Default: 0.01.",
        TARGET,
        float,
        "SHARE",
    ),
    Option(
        "--gate", "gate", "With --url: concurrency at which the SLO must hold. Default: the lowest level.", TARGET, int
    ),
    Option("--usd-per-hour", "usd_per_hour", "With --url: price of the server, USD/h.", TARGET, float),
    Option("--levels", "levels", "Concurrency per copy, as in 1,2,4.", LOAD),
    Option(
        "--search",
        "search",
        "Measure levels upward until more load can't change the target, choose levels between the lowest and the "
        "highest, or measure every level. Default with --levels: every level.",
        LOAD,
        choices=("sweep", "adaptive", "every_level"),
    ),
    Option("--goal", "goal", "Goal of an adaptive search.", LOAD, choices=("knee", "max_concurrency", "max_goodput")),
    Option("--requests", "requests", "Measured requests per level.", LOAD, int),
    Option("--rate", "rates", "Open loop: requests per second, as in 1,2,4; for a ramp: start,end.", LOAD),
    Option(
        "--arrival",
        "arrival",
        "With --rate: arrival process.",
        LOAD,
        choices=("poisson", "gamma", "constant", "ramp"),
        default="poisson",
    ),
    Option(
        "--smoothness",
        "arrival_smoothness",
        "With --arrival gamma: 1 is Poisson, less comes in bursts, more comes evenly. Default: 1.",
        LOAD,
        float,
    ),
    Option("--level-seconds", "level_s", "With --rate: duration of a level. Default: 30.", LOAD, float, "S"),
    Option(
        "--connections", "max_connections", "With --rate or --trace: most requests in flight. Default: 512.", LOAD, int
    ),
    Option(
        "--protocol",
        "protocol",
        "Protocol of the JumpStart article of January 2024.",
        LOAD,
        choices=("jumpstart-2024",),
    ),
    Option(
        "--api",
        "api",
        "With SPEC: path of the requests, SageMaker's OpenAI path or its own. Default: that of the spec.",
        LOAD,
        choices=("invoke", "openai"),
    ),
    Option("--workers", "workers", "Number of load processes.", LOAD, int),
    Option("--input-tokens", "input_tokens", "With --url: mean prompt length.", PROMPTS, int, default=256),
    Option(
        "--input-tokens-stddev",
        "input_tokens_stddev",
        "With --url: standard deviation of the prompt length. Default: 0.",
        PROMPTS,
        float,
        "TOKENS",
        default=0.0,
    ),
    Option("--output-tokens", "output_tokens", "With --url: mean answer length.", PROMPTS, int, default=128),
    Option(
        "--output-tokens-stddev",
        "output_tokens_stddev",
        "With --url: standard deviation of the answer length. Default: 0.",
        PROMPTS,
        float,
        "TOKENS",
        default=0.0,
    ),
    Option(
        "--shared-prefix-tokens",
        "shared_prefix_tokens",
        "With --url: length of the prefix that prompts share. Default: 0.",
        PROMPTS,
        int,
        "TOKENS",
        default=0,
    ),
    Option(
        "--prefix-groups",
        "prefix_groups",
        "With --shared-prefix-tokens: number of different prefixes. Default: 1.",
        PROMPTS,
        int,
        default=1,
    ),
    Option(
        "--turns", "turns", "With --url: mean number of turns of a conversation. Default: 1.", PROMPTS, int, default=1
    ),
    Option(
        "--turns-stddev",
        "turns_stddev",
        "With --turns: standard deviation. Default: 0.",
        PROMPTS,
        float,
        default=0.0,
    ),
    Option(
        "--turn-delay",
        "turn_delay_s",
        "With --turns: mean time that a user thinks before a further turn. Default: 0.",
        PROMPTS,
        float,
        "S",
        default=0.0,
    ),
    Option(
        "--turn-delay-stddev",
        "turn_delay_stddev_s",
        "With --turn-delay: its standard deviation. Default: 0.",
        PROMPTS,
        float,
        "S",
        default=0.0,
    ),
    Option("--prompts", "prompts", "JSONL file of prompts.", PROMPTS, Path),
    Option("--trace", "trace", "Trace to replay: CSV or JSONL.", PROMPTS, Path),
    Option(
        "--speed",
        "speed",
        "With --trace: replay speed; 2 is twice as fast as recorded.",
        PROMPTS,
        float,
        default=1.0,
    ),
    Option("--budget", "budget_minutes", "Time limit of the trial.", LIMITS, float, "MINUTES"),
    Option("--budget-usd", "budget_usd", "Cost limit of the trial.", LIMITS, float),
    Option("--timeout", "request_timeout_s", "Time limit of a request.", LIMITS, float, "S"),
    Option("--stall-timeout", "stall_timeout_s", "Longest gap between two parts of a stream.", LIMITS, float, "S"),
    Option("--retries", "max_retries", "Retries of throttled or not ready requests.", LIMITS, int),
    Option("--records", "records", "Write every request to this JSONL file.", OUTPUT, Path, "FILE"),
)
OPTIONS: Final = {option.flag: option for option in _ROWS}
