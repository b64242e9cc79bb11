from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

READ = (
    "serving.properties: serving.properties, read as LMI 27, lmi-async "
    "(a serving.properties is read by LMI; version assumed, the newest; give --version)\n"
)
ONE_ERROR = f"{READ}1 file: 1 error, 0 warnings, 0 notes\n"
CLEAN = "option.model_id=org/model\noption.revision=abc\noption.max_rolling_batch_size=64\n"


@pytest.fixture
def file(project: Path) -> Path:
    return project / "serving.properties"


def test_a_choice_that_is_none_is_refused_in_plain_words(seatrial: Seatrial) -> None:
    words = seatrial("lint", "x", "--engine", "foo").stderr.replace("│", "").split()
    assert "Invalid value for '--engine': 'foo' is not one of 'lmi', 'tgi', 'vllm', 'sglang'." in " ".join(words)


def test_text_names_line_key_rule_severity_and_fix(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"{CLEAN}option.max_rolling_batch=64\n")
    done = seatrial("lint", "serving.properties")
    assert (done.returncode, done.stderr) == (1, f"{READ}1 file: 0 errors, 1 warning, 0 notes\n")
    assert done.stdout == (
        "serving.properties:4: option.max_rolling_batch: SEA313: warning: max_rolling_batch is unknown to LMI 27, "
        "which ignores it silently\n  hint: did you mean option.max_rolling_batch_size?\n"
    )


def test_the_rule_of_a_secret_is_told_and_the_secret_is_not(seatrial: Seatrial, project: Path) -> None:
    (project / "a.env").write_text("HF_TOKEN=lighthouse-7\n")
    done = seatrial("lint", "a.env", "--quiet")
    assert done.stdout.startswith("a.env:1: HF_TOKEN: SEA330: error: ")
    assert "lighthouse" not in done.stdout + done.stderr


def test_errors_come_before_the_rest_and_all_are_counted(seatrial: Seatrial, project: Path) -> None:
    (project / "a.properties").write_text(CLEAN.replace("option.revision=abc\n", "") + "option.max_rolling_batch=64\n")
    (project / "b.properties").write_text(f"{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "a.properties", "b.properties")
    findings = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert done.stderr.splitlines()[-1] == "2 files: 1 error, 1 warning, 1 note"
    assert [finding.partition(":")[0] for finding in findings] == ["b.properties", "a.properties", "a.properties"]
    assert [rule for line in findings for rule in ("error", "warning", "note") if f": {rule}: " in line] == [
        "error",
        "warning",
        "note",
    ]


def test_json_lists_the_findings(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "serving.properties", "--format", "json")
    assert (done.returncode, done.stderr) == (1, ONE_ERROR)
    (row,) = json.loads(done.stdout)["findings"]
    assert (row["file"], row["line"], row["field"], row["rule"], row["hint"]) == (
        "serving.properties",
        4,
        "option.dtype",
        "SEA317",
        "write bf16",
    )


def test_sarif_places_each_result_and_describes_each_rule(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "serving.properties", "--format", "sarif")
    log = json.loads(done.stdout)
    assert (log["version"], log["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert (rule["id"], rule["defaultConfiguration"]) == ("SEA317", {"level": "error"})
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("SEA317", 0, "error")
    assert result["locations"] == [
        {"physicalLocation": {"artifactLocation": {"uri": "serving.properties"}, "region": {"startLine": 4}}}
    ]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"]
    assert [note["message"]["text"] + "\n" for note in invocation["toolExecutionNotifications"]] == [READ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (CLEAN, 0),
        (CLEAN.replace("option.revision=abc\n", ""), 0),  # a note alone
        (f"{CLEAN}option.nothing_like_it=1\n", 1),
        (f"{CLEAN}option.dtype=bfloat16\n", 1),
        ("\0", 2),
    ],
)
def test_the_exit_code_tells_clean_found_and_unreadable(text: str, code: int, seatrial: Seatrial, file: Path) -> None:
    file.write_text(text)
    assert seatrial("lint", "serving.properties").returncode == code


def test_an_unreadable_path_hides_no_finding(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "none.env", "serving.properties")
    assert (done.returncode, done.stderr) == (
        2,
        f"{READ}none.env: SEA101: no such file\n1 file: 1 error, 0 warnings, 0 notes\n",
    )
    assert "SEA317" in done.stdout


def test_fix_rewrites_and_shows_the_difference(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"# mine\n{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "--fix", "serving.properties")
    assert (done.returncode, done.stdout) == (0, "")
    assert "-option.dtype=bfloat16\n+option.dtype=bf16\n" in done.stderr
    assert file.read_text() == f"# mine\n{CLEAN}option.dtype=bf16\n"


def test_a_folder_with_an_instance_type(seatrial: Seatrial, project: Path) -> None:
    folder = project / "code"
    folder.mkdir()
    (folder / "serving.properties").write_text(f"{CLEAN}option.tensor_parallel_degree=8\n")
    done = seatrial("lint", "code", "--instance-type", "ml.g5.12xlarge")
    assert done.stdout.splitlines()[0].startswith(
        "code/serving.properties:4: option.tensor_parallel_degree: SEA326: error: ml.g5.12xlarge has 4 accelerators"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--version", "27"), "--version: SEA108: --version needs --engine\n  hint: add --engine\n"),
        (
            ("--engine", "lmi", "--version", "new"),
            "--version: SEA107: 'new' is not a known version of LMI; known: lmi5 (DJL 0.23) to lmi29\n"
            "  hint: write an LMI number (lmi27), a DJL version (0.36.0) or an engine version (3.3.6)\n",
        ),
        (
            ("--instance-type", "ml.g5.13xlarge"),
            "--instance-type: SEA110: ml.g5.13xlarge is not in the catalog\n"
            "  hint: did you mean ml.g5.16xlarge, ml.g5.12xlarge, ml.g5.xlarge?\n",
        ),
    ],
)
def test_a_wrong_option_is_told(arguments: tuple[str, ...], message: str, seatrial: Seatrial, file: Path) -> None:
    file.write_text(CLEAN)
    done = seatrial("lint", "serving.properties", *arguments)
    assert (done.returncode, done.stderr) == (2, message)


def test_quiet_writes_findings_and_failures_only(seatrial: Seatrial, file: Path) -> None:
    file.write_text(f"{CLEAN}option.dtype=bfloat16\n")
    done = seatrial("lint", "--quiet", "serving.properties", "none.env", "a" * 5000)
    assert done.returncode == 2
    assert [line.rpartition(": SEA101: ")[2] for line in done.stderr.splitlines()] == [
        "no such file",
        "File name too long",
    ]
    assert "SEA317" in done.stdout


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("lmi99", "'lmi99' is not a known version of LMI; known: lmi5 (DJL 0.23) to lmi29"),
        ("0.22.1", "'0.22.1' is not a known version of LMI; known: lmi5 (DJL 0.23) to lmi29"),
    ],
)
def test_an_unknown_version_of_lmi_is_refused(version: str, message: str, seatrial: Seatrial, file: Path) -> None:
    file.write_text(CLEAN)
    done = seatrial("lint", "serving.properties", "--engine", "lmi", "--version", version)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"--version: SEA107: {message}")


def test_a_version_names_its_engine(seatrial: Seatrial, file: Path) -> None:
    file.write_text("option.model_id=a/b\n")
    done = seatrial("lint", "serving.properties", "--engine", "lmi", "--version", "0.29.0-tensorrtllm0.11.0-cu124")
    assert done.stderr.startswith("serving.properties: serving.properties, read as LMI 11, lmi-trtllm (as given)\n")


def test_half_a_character_in_one_file_keeps_no_other_from_being_linted(seatrial: Seatrial, project: Path) -> None:
    (project / "half.json").write_text('{"OPTION_ROLLING_BATCH": "\\ud800"}', encoding="utf-8")
    (project / "whole.env").write_text("OPTION_MODEL_IDD=org/model\n", encoding="utf-8")
    done = seatrial("lint", "half.json", "whole.env")
    assert done.returncode == 2
    assert "half.json" in done.stderr + done.stdout
    assert "OPTION_MODEL_IDD" in done.stdout + done.stderr
    assert "--version: SEA107" not in done.stderr
