"""What the doctor makes of texts about failures: public ones with their accepted answers, and what is quoted of them.

`failure_texts.json` holds the line that tells the cause, with invented names, where it was asked, and the answer as the
name of a symptom. The texts whose source has an even SHA-256 were kept away while the patterns were written.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from seatrial.operations.doctor.diagnose import text_diagnoses
from seatrial_base.catalog.symptoms import SYMPTOMS, find_symptom, last_error

if TYPE_CHECKING:
    from tests.command_line import CommandLine

_FILE: Final = json.loads(Path(__file__).with_name("failure_texts.json").read_text(encoding="utf-8"))
TEXTS: Final = _FILE["rows"]
REFUSALS: Final = _FILE["refusals"]
KEPT: Final = [row for row in TEXTS if int(sha256(row["source"].encode()).hexdigest(), 16) % 2 == 0]
HEALTH_CHECK: Final = (
    "The primary container for production variant AllTraffic did not pass the ping health check. Please check "
    "CloudWatch logs for this endpoint."
)


def is_answered(row: dict[str, object]) -> bool:
    """Return whether the first diagnosis is the accepted answer's."""
    first = text_diagnoses(str(row["reason"]), tuple(row["log"]) or None)[0]  # type: ignore[arg-type]  # a row of JSON
    accepted = [(each.rule, each.source) for each in SYMPTOMS.rows if each.name == row["answer"]]
    return (first.rule, first.source) in accepted


@pytest.mark.parametrize("row", [row for row in TEXTS if row not in KEPT], ids=lambda row: row["source"])
def test_a_public_text_gets_its_accepted_answer(row: dict[str, object]) -> None:
    assert is_answered(row)


def test_of_the_texts_that_were_kept_away_no_smaller_share_is_answered_than_was_measured() -> None:
    """52 of 59, once, before anyone changed a pattern by them."""
    assert sum(map(is_answered, KEPT)) / len(KEPT) >= 52 / 59


def test_the_texts_are_many_and_each_is_of_another_source() -> None:
    assert len(TEXTS) > 100
    assert len({row["source"] for row in TEXTS}) == len(TEXTS)
    assert 0.4 < len(KEPT) / len(TEXTS) < 0.6


@pytest.mark.parametrize(
    ("reason", "log", "rule", "words"),
    [
        ("Failed to download model data. Please ensure that an S3 VPC endpoint exists", None, "SEA644", "gateway"),
        ("Image size 13494688833 is greater than supported size 10737418240", None, "SEA638", "ServerlessConfig"),
        ("Request to service failed.", "exec /usr/bin/python3: exec format error", "SEA638", "linux/amd64"),
        (HEALTH_CHECK, "creating shared memory segment /dev/shm/x: No space left on device", "SEA639", "NCCL_SHM"),
        ("Failed to extract model data archive: not a valid tar.gz", None, "SEA640", "ends in a slash"),
        (HEALTH_CHECK, "OSError: You are trying to access a gated repo.", "SEA759", "hub_token_secret"),
        (HEALTH_CHECK, "ValueError: odd\nINFO exec format error in a comment", "SEA751", "no known cause"),
        ("CapacityError: Unable to provision requested ML compute capacity", "CUDA out of memory", "SEA753", "later"),
        (HEALTH_CHECK, None, "SEA757", "give it with --log"),
        ("Something that nobody knows", None, "SEA751", "give it with --log"),
        ("", "all is well", "SEA751", "give more of it"),
    ],
)
def test_a_text_is_explained(reason: str, log: str | None, rule: str, words: str) -> None:
    (finding,) = text_diagnoses(reason, None if log is None else tuple(log.splitlines()))
    assert finding.rule == rule
    assert words in finding.hint
    # Nothing but the text says that something failed.
    assert "It is Failed" not in finding.message
    assert "It failed" not in finding.message


def test_the_last_error_of_a_log_is_quoted_and_not_what_follows_from_it() -> None:
    log = (
        "KeyError: 'an earlier start'",
        "\x1b[31mERROR\x1b[0m odd.module.OddError: the flux is 3",
        "(Worker_TP0 pid=1) ERROR WorkerProc failed to start.",
        "RuntimeError: Engine core initialization failed. See root cause above.",
        "INFO waiting",
    )
    (finding,) = text_diagnoses(HEALTH_CHECK, log)
    assert 'is: "ERROR odd.module.OddError: the flux is 3"' in finding.message
    assert last_error(["WARNING ValueError: retried", "all is well"]) == ""


def test_an_error_after_a_known_cause_is_told_beside_it() -> None:
    """A log may hold several starts: the cause of an earlier one is not that of the last."""
    known, odd = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "odd.OddError: the flux is 3"
    follows = "RuntimeError: Engine core initialization failed. See root cause above."
    first, second = text_diagnoses(HEALTH_CHECK, (known, follows, "INFO starting", odd, follows))
    assert (first.rule, second.rule) == ("SEA755", "SEA751")
    assert f'is: "{odd}"' in second.message
    for log in ((odd, known, follows), (known, known), (odd, known, f"INFO {odd}")):
        assert [each.rule for each in text_diagnoses(HEALTH_CHECK, log)] == ["SEA755"]
    # A reason that names a cause is about this failure; the log may be of another one.
    assert [each.rule for each in text_diagnoses("CUDA out of memory", (odd,))] == ["SEA755"]


def test_the_error_in_a_line_of_json_or_of_a_worker_of_djl_is_read() -> None:
    shard = '{"level":"ERROR","message":"Traceback:\\n  File x\\nCUDA out of memory. Tried to allocate"}'
    worker = "2026-11-01 10:00:00 [WARN ] PyProcess - W-167-model-stderr: torch.OutOfMemoryError: CUDA out of memory"
    for line in (shard, worker):
        assert text_diagnoses(HEALTH_CHECK, (line, "retrying"))[0].rule == "SEA755"


@pytest.mark.parametrize(
    "line",
    [
        "args: Namespace(trust_remote_code=False, max_model_len=4096)",
        "Args { model_id: x, trust_remote_code: false, max_input_tokens: 1024 }",
        "WARNING 11-01 gpu.py: bfloat16 is not supported on this device, using float16",
        "The image of the request was not found in the cache, so it is decoded again",
        '10.0.0.1 "GET /v1/models HTTP/1.1" 403 Forbidden; weights lie in s3://nordwind/m',
        "max_model_len is taken from max_position_embeddings",
        "Received SIGTERM, not SIGKILL",
        "Downloaded the tokenizer; a request timed out",
        "The user is not authorized",
    ],
)
def test_a_line_that_only_has_the_words_is_no_symptom(line: str) -> None:
    assert find_symptom([line]) is None


@pytest.mark.parametrize("row", TEXTS, ids=lambda row: row["source"])
def test_what_a_refusal_names_is_in_the_answer(row: dict[str, object]) -> None:
    """A role, a right, an image, a topic or files that SageMaker names, and nothing that was left open."""
    first = text_diagnoses(str(row["reason"]), tuple(row["log"]))[0]  # type: ignore[arg-type]  # a row of JSON
    assert not {"{", "|"} & {*first.message} or first.rule == "SEA751"
    if str(row["answer"]).endswith("-right") and first.rule != "SEA751":
        named = [word.strip("'\"., :") for word in first.evidence.split() if "arn:" in word or "s3://" in word]
        assert all(name in first.message for name in named)


def test_the_image_and_the_type_are_judged_as_lint_judges_them() -> None:
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.30.0-neuronx-sdk2.20.1"
    findings = text_diagnoses(HEALTH_CHECK, None, image=image, instance_type="ml.g5.2xlarge")
    assert [each.rule for each in findings] == ["SEA757", "SEA325"]
    newer = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
    assert text_diagnoses(HEALTH_CHECK, None, image=newer)[0].rule == "SEA754"


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: row["log"][-1][:60])
def test_a_refusal_of_the_engine_names_its_row_and_what_would_start(row: dict[str, Any]) -> None:
    (first, *_) = text_diagnoses(HEALTH_CHECK, tuple(row["log"]), image=row["image"], instance_type=row["kind"])
    assert [word for word in row["words"] if word not in first.hint] == []
    assert row["absent"] not in first.hint


def test_a_text_needs_no_account(command_line: CommandLine, tmp_path: Path) -> None:
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    (tmp_path / "log.txt").write_text("CUDA out of memory\n")
    for arguments, stdin in (
        (["--log", "-"], "CUDA out of memory"),
        (["--log", "log.txt", "--reason", HEALTH_CHECK], ""),
    ):
        done = command_line.run("doctor", *arguments, folder=tmp_path, variables=nowhere, stdin=stdin)
        assert (done.returncode, done.stderr) == (1, "")
        assert done.stdout.splitlines()[0].startswith("SEA755: the text: The model does not fit")
        assert "  seen: CUDA out of memory" in done.stdout
    (tmp_path / "log.txt").write_bytes("CUDA out of memory\n".encode("utf-16"))
    done = command_line.run("doctor", "--log", "log.txt", folder=tmp_path, variables=nowhere)
    assert done.stdout.splitlines()[0].startswith("SEA755: the text: The model does not fit")
    (tmp_path / "log.txt").write_text("CUDA out of memory\n" + "INFO all is well\n" * 5000)
    done = command_line.run("doctor", "--log", "log.txt", folder=tmp_path, variables=nowhere)
    assert done.stderr == "of 5,001 lines, the last 5,000 were searched\n"
    assert done.stdout.startswith("SEA751: the text: No known cause has this text")
    token = "hf_" + "a1B2" * 9
    done = command_line.run("doctor", "--reason", f"bad {token}", "--format", "json", folder=tmp_path)
    assert json.loads(done.stdout)["findings"][0]["rule"] == "SEA751"
    assert token not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ([], "SEA106"),
        (["--log", "-"], "SEA106"),
        (["--reason", " "], "SEA106"),
        (["--log", "missing.txt"], "SEA101"),
        (["chat", "--reason", "x"], "SEA108"),
        (["--reason", "x", "--fix"], "SEA108"),
        (["chat", "--image", "x"], "SEA108"),
        (["--reason", "x", "--instance-type", "ml.g5.huge"], "SEA110"),
    ],
)
def test_a_wrong_command_for_a_text_is_refused(
    command_line: CommandLine, tmp_path: Path, arguments: list[str], rule: str
) -> None:
    done = command_line.run("doctor", *arguments, folder=tmp_path)
    assert (done.returncode, rule in done.stderr) == (2, True)
