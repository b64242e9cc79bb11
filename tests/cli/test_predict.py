"""`seatrial predict` as a user runs it; what the numbers are is tested in tests/planner/predict."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.command_line import run_afresh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.command_line import CommandLine

TABLE = (
    "model,instance_type,tp_degree,instance_count,input_tokens,output_tokens,concurrency,note\n"
    "Llama 2 7B,ml.g5.2xlarge,1,1,256,256,1,alone\n"
    "meta-llama/Llama-2-7b-hf,ml.g5.12xlarge,4,2,256,256,64,two\n"
)


class Predict(Protocol):
    def __call__(self, *arguments: str, stdin: str = ...) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def predict(folder: Path, command_line: CommandLine) -> Predict:
    def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return command_line.run("predict", *arguments, folder=folder, stdin=stdin)

    return run


def test_it_writes_the_table_back_with_what_it_predicts(predict: Predict) -> None:
    done = predict("rows.csv")
    rows = list(csv.DictReader(done.stdout.splitlines()))

    assert (done.returncode, done.stderr) == (0, "")
    assert [row["note"] for row in rows] == ["alone", "two"]
    assert all(float(row["predicted_throughput_tok_s"]) > 0 for row in rows)
    assert all(float(row["predicted_latency_ms_per_token"]) > 0 for row in rows)
    assert [row["uncertainty"] for row in rows] == ["extrapolated", "assumed"]  # no row has the vLLM of LMI 27


def test_two_runs_give_the_same_bytes(folder: Path) -> None:
    """Whatever order its sets have: each process has hashes of its own."""
    first, second = (
        run_afresh("predict", "rows.csv", folder=folder, variables={"PYTHONHASHSEED": seed}).stdout for seed in "12"
    )
    assert first == second != ""


def test_it_reads_standard_input(predict: Predict) -> None:
    assert predict("-", stdin=TABLE).stdout == predict("rows.csv").stdout


def test_json_is_for_machines(predict: Predict) -> None:
    rows = json.loads(predict("rows.csv", "--format", "json").stdout)

    assert [(row["note"], row["concurrency"]) for row in rows] == [("alone", 1), ("two", 64)]
    assert all(isinstance(row["predicted_throughput_tok_s"], float) for row in rows)


def test_the_closed_form_is_near_the_simulation(predict: Predict) -> None:
    simulated = json.loads(predict("rows.csv", "--format", "json").stdout)
    closed = json.loads(predict("rows.csv", "--format", "json", "--form", "closed").stdout)

    for left, right in zip(simulated, closed, strict=True):
        assert left["predicted_throughput_tok_s"] == pytest.approx(right["predicted_throughput_tok_s"], rel=0.1)


def test_another_engine_gives_another_prediction(predict: Predict) -> None:
    tgi, lmi = (predict("rows.csv", "--engine", engine).stdout for engine in ("tgi-1.1", "lmi-15"))

    assert tgi != lmi
    assert ",assumed," in tgi
    assert tgi.count("\n") == lmi.count("\n")


def test_a_mistake_writes_nothing_and_tells_everything(predict: Predict) -> None:
    given = TABLE.replace(",1,alone", ",0,alone").replace("ml.g5.12xlarge", "ml.g9.12xlarge")
    done = predict("-", stdin=given)

    assert (done.returncode, done.stdout) == (2, "")
    assert [line for line in done.stderr.splitlines() if not line.startswith("  hint: ")] == [
        "standard input:2: concurrency: SEA222: '0' is not between 1 and 4,096",
        "standard input:3: instance_type: SEA223: 'ml.g9.12xlarge' is not in the catalog",
    ]


MIXED = (
    "model,engine,engine_version,precision,instance_type,tp_degree,input_tokens,output_tokens,concurrency,output_tok_s\n"
    "openai/gpt-oss-20b,vLLM,v0.15.1,mxfp4,ml.g7e.2xlarge,,1581.3,600,8,17\n"
    "Qwen/Qwen3-32B,vLLM,0.11.0,bf16,H100 PCIe,2,1581.3,600,16,18\n"
)


def test_a_row_that_can_not_be_predicted_says_why_beside_those_that_can(predict: Predict) -> None:
    done = predict("-", stdin=MIXED)
    answered, other = csv.DictReader(done.stdout.splitlines())

    assert done.returncode == 0
    assert done.stderr.startswith("1 of 2 rows")
    assert "predicted_error" in done.stderr
    assert (float(answered["predicted_throughput_tok_s"]) > 0, answered["predicted_error"]) == (True, "")
    assert other["predicted_error"].startswith("SEA223: instance_type: 'H100 PCIe' is not in the catalog")
    assert [other[name] for name in other if name.startswith("predicted_") and name != "predicted_error"] == [""] * 8
    assert [row["output_tok_s"] for row in (answered, other)] == ["17", "18"]


def test_a_row_without_a_number_counts_and_a_strict_run_refuses_it(predict: Predict) -> None:
    text = (
        "model,instance_type,tp_degree,input_tokens,output_tokens,concurrency\nLlama 2 70B,ml.g5.2xlarge,1,256,256,8\n"
    )
    done, strict = predict("-", stdin=text), predict("-", "--strict", stdin=text)

    assert (done.returncode, strict.returncode, strict.stdout) == (0, 2, "")
    assert "does not fit" in done.stdout
    assert done.stderr.startswith("1 of 1 rows can't be predicted")
    assert "SEA224: 1 of 1 rows can't be predicted" in strict.stderr


def test_a_strict_run_writes_nothing_when_one_row_is_wrong(predict: Predict) -> None:
    done = predict("-", "--strict", stdin=MIXED)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("standard input:3: instance_type: SEA223: 'H100 PCIe' is not in the catalog")


def test_a_steady_load_adds_means_and_percentiles(predict: Predict) -> None:
    (row, _) = json.loads(predict("-", "--load", "steady", "--format", "json", stdin=MIXED).stdout)

    per_client = 600 / (row["predicted_e2e_mean_ms"] / 1e3)
    assert row["predicted_throughput_tok_s"] == pytest.approx(8 * per_client, rel=1e-4)
    assert row["predicted_e2e_p90_ms"] >= row["predicted_e2e_p50_ms"] > row["predicted_ttft_mean_ms"] > 0


def test_a_saturated_load_needs_no_concurrency(predict: Predict) -> None:
    given = MIXED.replace(",8,17", ",inf,17")
    refused = predict("-", stdin=given)
    (row, _) = csv.DictReader(predict("-", "--load", "saturated", stdin=given).stdout.splitlines())

    assert (refused.returncode, "--load saturated" in refused.stderr) == (2, True)
    assert float(row["predicted_throughput_tok_s"]) > 0
    assert row["predicted_latency_ms_per_token"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.csv",), "none.csv: SEA220: the table can't be read: No such file or directory\n"),
        ((".",), ".: SEA220: the table can't be read: Is a directory\n"),
        (
            ("rows.csv", "--engine", "vllm"),
            "--engine: SEA223: the engine 'vllm' is unknown\n"
            "  hint: write family and version, as `tgi-1.1` or `lmi-15`; families: lmi, tgi, vllm, sglang, trtllm, "
            "neuron\n",
        ),
    ],
)
def test_a_wrong_argument(arguments: tuple[str, ...], message: str, predict: Predict) -> None:
    done = predict(*arguments)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_no_cell_is_a_formula_and_numbers_stay_numbers(folder: Path, predict: Predict) -> None:
    head, first, *_ = TABLE.splitlines()
    cells = ["=1+1", "@SUM(A1)", "+1+cmd|'/c calc'!A0", "-2+3", "\tx", "-5", "+5.5", "plain"]
    columns = [*(f"c{number}" for number in range(len(cells))), "=HYPERLINK(1)"]
    (folder / "rows.csv").write_text(f"{head},{','.join(columns)}\n{first},{','.join(cells)},x\n", encoding="utf-8")
    (row,) = csv.DictReader(predict("rows.csv").stdout.splitlines())
    assert [row[name] for name in columns[:-1]] == [*(f"'{cell}" for cell in cells[:5]), *cells[5:]]
    assert "'=HYPERLINK(1)" in row


def test_a_table_of_very_many_columns_is_refused_at_once(folder: Path, predict: Predict) -> None:
    head, first, *_ = TABLE.splitlines()
    others = [f"c{number}" for number in range(100_000)]
    (folder / "rows.csv").write_text(f"{head},{','.join(others)}\n{first},{','.join(others)}\n", encoding="utf-8")
    done = predict("rows.csv")
    assert done.returncode == 2
    assert "rows.csv:1: SEA220: the table has 100," in done.stderr


def test_a_closed_standard_input_is_told(folder: Path) -> None:
    command = f"{sys.executable} -m seatrial.cli predict - <&-"
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False, timeout=60)  # noqa: S607
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "standard input: SEA220: it is closed")
