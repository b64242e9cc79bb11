"""Files that commands read and write: no output may destroy an input, nor another output."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.documents.result import TrialResult


WHERE = "command line"
RULE = "SEA514"
REPORT_FILES = ("report.html", "report.md", "report.json")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse outputs, by their option, that are the same file as an input or another output, by any name or link.

    Raises:
        SpecError: SEA514, with every clash.
    """
    if problems := list(_clashes(_given(outputs), _given(inputs))):
        raise SpecError(problems)


def report_outputs(folder: Path | None) -> dict[str, Path | None]:
    """Return the files of a report by what messages call them."""
    return {} if folder is None else {f"--output ({name})": folder / name for name in REPORT_FILES}


def spec_inputs(spec: Path | None, environments: Path | None, environment: str | None) -> dict[str, Path | None]:
    """Return the files that an endpoint is loaded from."""
    if spec is None:
        return {}
    from seatrial.specs.spec_files import calibration_path, lock_path

    named = None if environments is None or environment is None else environments / f"{environment}.yaml"
    return {
        "SPEC": spec,
        "--environment": named,
        "the lock": lock_path(spec),
        "the calibration": calibration_path(spec),
    }


def check_lock(spec: Path, environments: Path, environment: str) -> None:
    """Refuse a lock that is the same file as what it is made from: it may be a link.

    Raises:
        SpecError: SEA514.
    """
    inputs = spec_inputs(spec, environments, environment)
    check_outputs({"the lock": inputs.pop("the lock")}, inputs)


def local_file(where: str | None) -> Path | None:
    """Return the path of what may be a file or an `s3://` URI."""
    return None if where is None or where.startswith("s3://") else Path(where)


def _given(files: Mapping[str, Path | None]) -> dict[str, Path]:
    return {name: path for name, path in files.items() if path is not None}


def _clashes(outputs: Mapping[str, Path], inputs: Mapping[str, Path]) -> Iterator[Finding]:
    for option, path in outputs.items():
        for name, read in inputs.items():
            if _is_same(path, read):
                message = f"{path.as_posix()} is also read as {name}"
                yield Finding(RULE, Place.at(WHERE, option), message, "choose another output")
    for (first, one), (second, other) in combinations(outputs.items(), 2):
        if _is_same(one, other) and (not one.exists() or one.is_file()):
            message = f"{other.as_posix()} is also the output {first}"
            yield Finding(RULE, Place.at(WHERE, second), message, "choose two different files")


def _is_same(one: Path, other: Path) -> bool:
    if follow_links(one) == follow_links(other):
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False


def read_result(where: str) -> TrialResult:
    """Read a result from a file or an `s3://` URI; raises as `read_result_text`."""
    return read_result_text(where)[0]


def read_result_text(where: str) -> tuple[TrialResult, str]:
    """Read a result from a file or an `s3://` URI, and return its text too, which is what was signed.

    Raises:
        BenchError: SEA501 when it can't be read or is no result of this release's; as `aws_failures` when AWS
            can't be asked.
    """
    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import fetch_result_text
    from seatrial_base.files import read_text
    from seatrial_load.cli.files import read_result_file
    from seatrial_load.documents.result import TrialResult

    if where.startswith("s3://"):
        import boto3

        with aws_failures(where):
            s3 = boto3.client("s3")
        text = fetch_result_text(where, s3)
        return TrialResult.from_json(text), text
    return read_result_file(Path(where), hint="give a file or an s3:// URI"), read_text(Path(where))
