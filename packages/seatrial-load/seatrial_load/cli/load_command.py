"""`seatrial-load --url URL`: load an OpenAI-compatible server, find its knee and judge it."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base import __version__
from seatrial_base.terminal import end_when_interrupted, show_text
from seatrial_load.cli.files import (
    BaselineResult,
    Unwritten,
    exit_code,
    keeping,
    measured_trial,
    prompted,
    read_result_file,
    write_result_file,
)
from seatrial_load.cli.requests import Mistakes, as_mistakes, server_request, trial_files
from seatrial_load.cli.show import result_lines, watched_lines
from seatrial_load.documents.options import OPTIONS, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN: Final = (("--against", "Earlier result to compare with."), ("--output", "Write the result as JSON to this file."))


def run_load_command(arguments: Sequence[str] | None = None) -> int:
    """Run the trial of the arguments and return the exit code: 0 when it passes, 130 when interrupted, else 1.

    Raises:
        SpecError: SEA501 and others, the command line or a file that it names is wrong.
        BenchError: The trial can't be run, or its files can't be written.
    """
    written = vars(_parser().parse_args(arguments))
    mistakes, unwritten = Mistakes(given=frozenset(written)), Unwritten()
    end_when_interrupted()
    with as_mistakes(mistakes):
        request, files = server_request(written, mistakes), trial_files(written)
        path: Path | None = written.get("--against")
        output: Path | None = written.get("--output")
        unfinished = None if output is None else output.with_name(f"{output.name}.unfinished")
        baseline = None if path is None else BaselineResult(result=read_result_file(path), uri=path.as_posix())
        with prompted(request, files) as (sourced, file), keeping(files.records, unwritten) as keep:
            result = measured_trial(
                sourced, keep, file, speed=files.speed, baseline=baseline, show=watched_lines, unfinished=unfinished
            )
    show_text("".join(f"{line}\n" for line in result_lines(result)))
    if output is not None and unfinished is not None:
        write_result_file(result, output)
        unfinished.unlink(missing_ok=True)
    unwritten.raise_if_any()
    return exit_code(result)


def _parser() -> ArgumentParser:
    parser = ArgumentParser("seatrial-load", description=__doc__.partition(": ")[2], argument_default=SUPPRESS)
    parser.add_argument("--version", action="version", version=__version__)
    groups = {name: parser.add_argument_group(name) for name in (row.group for row in OPTIONS.values())}
    for row in OPTIONS.values():
        if row.kind is bool:
            groups[row.group].add_argument(row.flag, dest=row.flag, help=row.words(), action="store_true")
            continue
        groups[row.group].add_argument(
            row.flag,
            dest=row.flag,
            help=row.words(known="--url"),
            type=row.kind if isinstance(row.kind, type) else str,
            metavar=row.option.metavar or (None if row.choices else row.flag.strip("-").replace("-", "_").upper()),
            choices=row.choices or None,
            action="append" if row.option.repeats else "store",
            required=row.flag == "--url",
        )
    for flag, words in _OWN:
        groups[OUTPUT].add_argument(flag, dest=flag, help=words, type=Path, metavar="FILE")
    return parser
