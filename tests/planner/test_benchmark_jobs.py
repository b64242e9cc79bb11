"""Results of SageMaker's benchmark jobs as points of a calibration."""

from __future__ import annotations

import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from seatrial.documents.calibration import MeasuredPoint
from seatrial.planner.benchmark_jobs import BenchmarkFile, benchmark_points
from seatrial_base.errors import SpecError
from tests.sample_plan import decided, sample_plan

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

PLAN = sample_plan().model_copy(update={"copy_count": decided(2)})


def export(loaded: LoadedSpec, **changes: object) -> dict[str, object]:
    """Return what AIPerf writes of 16 requests in flight: 800 tokens per second, answers of one length."""
    lengths = loaded.endpoint.workload
    told = {
        "output_token_throughput": {"unit": "tokens/sec", "avg": 800.0},
        "request_latency": {"unit": "ms", "avg": 5_000.0, "p90": lengths.output_tokens * 25.0},
        "input_sequence_length": {"unit": "tokens", "avg": lengths.input_tokens * 1.02},
        "output_sequence_length": {"unit": "tokens", "avg": float(lengths.output_tokens), "std": 0.0},
        "error_summary": [],
        "was_cancelled": False,
        "input_config": {"loadgen": {"concurrency": 16}},
    }
    return {**told, **changes}


def written(path: Path, document: object) -> Path:
    """Write an export, or an archive with it as a job leaves it."""
    content = json.dumps(document).encode()
    if path.suffix == ".json":
        path.write_bytes(content)
        return path
    with tarfile.open(path, "w:gz") as archive:
        inside = tarfile.TarInfo("results/profile_export_aiperf.json")
        inside.size = len(content)
        archive.addfile(inside, io.BytesIO(content))
    return path


def problems(loaded: LoadedSpec, path: Path, concurrency: int | None = None) -> list[str]:
    with pytest.raises(SpecError) as refused:
        benchmark_points([BenchmarkFile(path, concurrency)], loaded, PLAN)
    return [f"{each.rule} {each.place.field}: {each.message}" for each in refused.value.problems]


@pytest.mark.parametrize("name", ["output.tar.gz", "profile_export_aiperf.json"])
def test_a_job_is_a_point_of_one_copy(ask: Ask, tmp_path: Path, name: str) -> None:
    loaded = ask()
    path = written(tmp_path / name, export(loaded))
    points, text = benchmark_points([BenchmarkFile(path)], loaded, PLAN)
    assert points == (MeasuredPoint(concurrency=8, output_tok_s=400.0, ms_per_token_p90=25.0),)
    assert json.loads(text) == export(loaded)


def test_the_concurrency_that_is_given_counts_and_answers_of_any_length_have_no_latency_by_token(
    ask: Ask, tmp_path: Path
) -> None:
    loaded = ask()
    lengths = {"unit": "tokens", "avg": float(loaded.endpoint.workload.output_tokens), "std": 40.0}
    path = written(tmp_path / "output.tar.gz", export(loaded, output_sequence_length=lengths, input_config={}))
    points, _ = benchmark_points([BenchmarkFile(path, 4)], loaded, PLAN)
    assert points == (MeasuredPoint(concurrency=2, output_tok_s=400.0),)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"input_config": {}}, ["SEA407 concurrency: the export does not tell the concurrency"]),
        (
            {"input_config": {"loadgen": {"concurrency": 3}}},
            ["SEA408 concurrency: 3 requests in flight are no whole number for each of 2 copies"],
        ),
        ({"error_summary": [{"count": 1}]}, ["SEA408 : requests of the benchmark failed"]),
        ({"error_request_count": {"unit": "requests", "avg": 1.0}}, ["SEA408 : requests of the benchmark failed"]),
        ({"was_cancelled": True}, ["SEA408 : the benchmark was stopped before its end"]),
        (
            {"output_token_throughput": {"unit": "requests/sec", "avg": 5.0}},
            ["SEA407 output_token_throughput: output_token_throughput.avg is missing, not above 0, or in another unit"],
        ),
    ],
)
def test_a_job_that_says_nothing_of_the_plan_is_refused(
    ask: Ask, tmp_path: Path, changes: dict[str, object], told: list[str]
) -> None:
    loaded = ask()
    assert problems(loaded, written(tmp_path / "output.tar.gz", export(loaded, **changes))) == told


def test_another_workload_is_refused(ask: Ask, tmp_path: Path) -> None:
    loaded = ask()
    short = {"unit": "tokens", "avg": 10.0}
    (told,) = problems(loaded, written(tmp_path / "output.tar.gz", export(loaded, input_sequence_length=short)))
    assert told.startswith("SEA408 input_sequence_length: the mean is 10 tokens, the spec has ")


def test_every_file_that_is_no_result_is_told(ask: Ask, tmp_path: Path) -> None:
    loaded = ask()
    names = ("empty.tar.gz", "text.tar.gz", "cut.tar.gz", "list.json", "missing.tar.gz")
    empty, text, cut, listed, missing = (tmp_path / name for name in names)
    tarfile.open(empty, "w:gz").close()
    text.write_text("no archive")
    cut.write_bytes(written(tmp_path / "output.tar.gz", export(loaded)).read_bytes()[:-60])
    listed.write_text("[]")
    with pytest.raises(SpecError) as refused:
        benchmark_points([BenchmarkFile(each) for each in (empty, text, cut, listed, missing)], loaded, PLAN)
    assert [each.message for each in refused.value.problems] == [
        "the archive has no profile_export_aiperf.json",
        "the file is no archive of a job",
        "the file is no archive of a job",
        "the export is no JSON object",
        "the benchmark can't be read: No such file or directory",
    ]
