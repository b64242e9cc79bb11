"""`seatrial-load --url URL`: load an OpenAI-compatible server, find its knee and judge it."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seatrial_base import __version__
from seatrial_base.terminal import end_when_interrupted, show_text
from seatrial_load.cli.files import BaselineResult, PromptFiles, Unwritten, keeping, measured_trial, prompted
from seatrial_load.cli.options import OPTIONS, OUTPUT, Option
from seatrial_load.cli.requests import LoadOptions, Mistakes, ServerOptions, as_mistakes, server_request
from seatrial_load.cli.results import read_result_file, write_result_file
from seatrial_load.cli.show import result_lines, watched_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import DataclassInstance

NOT_PASSED: Final = 1
_URL_ALONE: Final = "With --url: "
_OWN: Final = (
    Option("--against", "against", "Earlier result to compare with.", OUTPUT, Path, "FILE"),
    Option("--output", "output", "Write the result as JSON to this file.", OUTPUT, Path, "FILE"),
)
_ALL: Final = (*OPTIONS.values(), *_OWN)


def run_load_command(arguments: Sequence[str] | None = None) -> int:
    """Run a trial as the arguments say and return the exit code: 0 when it passes, else 1.

    Raises:
        SpecError: SEA501 and others, the command line or a file that it names is wrong.
        BenchError: The trial can't be run, or its files can't be written.
    """
    written = vars(_parser().parse_args(arguments))
    values = {option.field: option.default for option in _ALL} | written
    server = ServerOptions(**_chosen(ServerOptions, values) | {"objectives": values["objectives"] or ()})
    load, files = LoadOptions(**_chosen(LoadOptions, values)), PromptFiles(**_chosen(PromptFiles, values))
    mistakes = Mistakes(given=frozenset(option.flag for option in _ALL if option.field in written))
    unwritten = Unwritten()
    end_when_interrupted()
    with as_mistakes(mistakes):
        request = server_request(server, load, files, mistakes)
        baseline = _baseline(values["against"])
        with prompted(request, files) as (sourced, file), keeping(values["records"], unwritten) as keep:
            result = measured_trial(sourced, keep, file, speed=files.speed, baseline=baseline, show=watched_lines)
    show_text("".join(f"{line}\n" for line in result_lines(result)))
    if values["output"] is not None:
        write_result_file(result, values["output"])
    unwritten.raise_if_any()
    return 0 if result.verdict.status == "pass" else NOT_PASSED


def _chosen(kind: type[DataclassInstance], values: dict[str, Any]) -> dict[str, Any]:
    return {field.name: values[field.name] for field in fields(kind)}


def _baseline(path: Path | None) -> BaselineResult | None:
    return None if path is None else BaselineResult(result=read_result_file(path), uri=path.as_posix())


def _parser() -> ArgumentParser:
    parser = ArgumentParser("seatrial-load", description=__doc__.partition(": ")[2], argument_default=SUPPRESS)
    parser.add_argument("--version", action="version", version=__version__)
    for group in dict.fromkeys(option.group for option in _ALL):
        listed = parser.add_argument_group(group)
        for option in (option for option in _ALL if option.group == group):
            listed.add_argument(
                option.flag,
                dest=option.field,
                help=option.help.removeprefix(_URL_ALONE).replace(", instead of SPEC", ""),
                type=option.kind,
                metavar=option.metavar or None,
                choices=option.choices or None,
                action="append" if option.repeats else "store",
                required=option.flag == "--url",
            )
    return parser
