"""Points of a calibration from results of SageMaker's benchmark jobs, which load an endpoint with AIPerf.

Facts: SageMaker API reference, CreateAIBenchmarkJob (a job writes to `OutputConfig.S3OutputLocation`); sagemaker-
python-sdk, `serve/ai_inference_recommender` (its archive `output.tar.gz` holds `profile_export_aiperf.json`); AIPerf
documentation, "Working with Profile Export Files": means, percentiles and units by metric, `error_summary`,
`was_cancelled`, and the configuration, which AIPerf doesn't promise to keep.
"""

from __future__ import annotations

import tarfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.documents.calibration import MeasuredPoint
from seatrial.planner.calibration import usable
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec


EXPORT: Final = "profile_export_aiperf.json"
LONGEST_BYTES: Final = 64 * 2**20
"""Of an export; AIPerf's have kilobytes."""
LENGTH_SHARE: Final = 0.1
"""How far the mean lengths may be from those of the spec: tokenizers and chat templates add some tokens."""
FIXED_SHARE: Final = 0.05
"""A standard deviation of the output's length below this share of its mean: latency by token has a percentile then."""
UNITS: Final = {
    "output_token_throughput": ("tokens/sec", "tokens/s", "tok/s"),
    "request_latency": ("ms",),
    "input_sequence_length": ("tokens",),
    "output_sequence_length": ("tokens",),
}


@dataclass(frozen=True, slots=True)
class BenchmarkFile:
    """A result of a benchmark job.

    Attributes:
        path: The job's archive, or the export from it.
        concurrency: Requests in flight; `None` where the export has them.
    """

    path: Path
    concurrency: int | None = None


def benchmark_points(
    files: Iterable[BenchmarkFile], loaded: LoadedSpec, plan: Plan
) -> tuple[tuple[MeasuredPoint, ...], str]:
    """Return a point for each file, for one copy of the plan's, and the text that was read.

    Formulas: throughput and concurrency by the plan's copies; ms per token = p90 of the request's latency / mean output
    tokens, where all answers have nearly the same length.

    Raises:
        SpecError: SEA407 when a file is no such result, SEA408 when it can't calibrate; all problems of all files.
    """
    points: list[MeasuredPoint] = []
    texts: list[str] = []
    problems: list[Finding] = []
    for file in files:
        try:
            text = export_text(file.path)
            texts.append(text)
            try:
                document = json_document(text)
            except ValueError as error:
                raise SpecError.of("SEA407", f"the export is no JSON: {error}", where=file.path.as_posix()) from error
            if not isinstance(document, dict):
                raise SpecError.of("SEA407", "the export is no JSON object", where=file.path.as_posix())
            points.append(_point(document, file, loaded, plan.copy_count.value))
        except SpecError as wrong:
            problems += wrong.problems
    if problems:
        raise SpecError(problems)
    return usable(points, "benchmark jobs"), "\n".join(texts)


def export_text(path: Path) -> str:
    """Return the text of an export, out of the job's archive where it is one.

    Raises:
        SpecError: SEA407, it can't be read.
    """
    try:
        if path.suffix == ".json":
            return path.read_bytes()[:LONGEST_BYTES].decode()
        with tarfile.open(path) as archive:
            inside = next((each for each in archive if each.isfile() and each.name.rpartition("/")[2] == EXPORT), None)
            content = None if inside is None else archive.extractfile(inside)
            if content is not None:
                return content.read(LONGEST_BYTES).decode()
    except (tarfile.TarError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SpecError.of("SEA407", "the file is no archive of a job", hint=_HINT, where=path.as_posix()) from error
    except OSError as error:
        message = f"the benchmark can't be read: {error.strerror or error}"
        raise SpecError.of("SEA407", message, hint=_HINT, where=path.as_posix()) from error
    raise SpecError.of("SEA407", f"the archive has no {EXPORT}", hint=_HINT, where=path.as_posix())


_HINT = "give the output.tar.gz of a benchmark job that is Completed, or the export from it"


def _point(export: Mapping[str, object], file: BenchmarkFile, loaded: LoadedSpec, copies: int) -> MeasuredPoint:
    where, workload = file.path.as_posix(), loaded.endpoint.workload
    tok_s = _statistic(export, "output_token_throughput", "avg")
    output_tokens = _statistic(export, "output_sequence_length", "avg")
    concurrency = _concurrency(export) if file.concurrency is None else file.concurrency
    problems = [*_problems(export, tok_s, output_tokens, concurrency, copies=copies, where=where)]
    for name, planned in (
        ("input_sequence_length", loaded.lengths.input.mean),
        ("output_sequence_length", float(workload.output_tokens)),
    ):
        mean = _statistic(export, name, "avg")
        if mean is not None and abs(mean - planned) > LENGTH_SHARE * planned:
            message = f"the mean is {mean:g} tokens, the spec has {planned:g}"
            problems.append(Finding("SEA408", Place.at(where, name), message, "measure the workload of the spec"))
    if problems or tok_s is None or output_tokens is None or concurrency is None:
        raise SpecError(problems)
    latency_ms, spread = (
        _statistic(export, "request_latency", "p90"),
        _statistic(export, "output_sequence_length", "std"),
    )
    # Where lengths differ, the p90 of the latency is that of long answers, and says nothing of a token.
    is_fixed = spread is not None and spread <= FIXED_SHARE * output_tokens
    return MeasuredPoint(
        concurrency=concurrency // copies,
        output_tok_s=tok_s / copies,
        ms_per_token_p90=latency_ms / output_tokens if latency_ms is not None and is_fixed else None,
    )


def _problems(
    export: Mapping[str, object],
    tok_s: float | None,
    output_tokens: float | None,
    concurrency: int | None,
    *,
    copies: int,
    where: str,
) -> Iterator[Finding]:
    for name, value in (("output_token_throughput", tok_s), ("output_sequence_length", output_tokens)):
        if value is None:
            yield Finding("SEA407", Place.at(where, name), f"{name}.avg is missing, not above 0, or in another unit")
    if concurrency is None:
        hint = "write it before the file: --benchmark 16=output.tar.gz"
        yield Finding("SEA407", Place.at(where, "concurrency"), "the export does not tell the concurrency", hint)
    elif concurrency < 1 or concurrency % copies:
        message = f"{concurrency} requests in flight are no whole number for each of {copies} copies"
        yield Finding("SEA408", Place.at(where, "concurrency"), message, "measure a multiple of the copies")
    # A benchmark with failed requests, or one that was stopped, says nothing of the endpoint.
    if export.get("error_summary") or _statistic(export, "error_request_count", "avg"):
        yield Finding("SEA408", Place.at(where), "requests of the benchmark failed", "measure again")
    if export.get("was_cancelled") is True:
        yield Finding("SEA408", Place.at(where), "the benchmark was stopped before its end", "measure again")


def _statistic(export: Mapping[str, object], name: str, what: str) -> float | None:
    """Return a statistic of a metric; `None` where it is missing, not above 0 (but for `std`), or in another unit."""
    metric = export.get(name)
    value = metric.get(what) if isinstance(metric, dict) else None
    if not isinstance(metric, dict) or isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_known = name not in UNITS or metric.get("unit") in UNITS[name]
    return float(value) if is_known and (value > 0 or (what == "std" and value == 0)) else None


def _concurrency(export: Mapping[str, object]) -> int | None:
    config = export.get("input_config")
    load = config.get("loadgen") if isinstance(config, dict) else None
    value = load.get("concurrency") if isinstance(load, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
