"""The pipeline of GitLab: what runs when, in which order, and with which role."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from seatrial.repository.write import NEWEST_PYTHON, OLDEST_PYTHON, job_s
from seatrial_base.bounds import LONGEST_DEPLOYMENT_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.repository.answers import Ci

CHECK_JSONSCHEMA = Path(sys.executable).parent / "check-jsonschema"
SCHEDULE = {"if": '$CI_PIPELINE_SOURCE == "schedule"'}
MAIN = {"if": "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"}
TARGETS = (("dev", "111111111111"), ("staging", "222222222222"), ("prod", "333333333333"))


@pytest.fixture(scope="module")
def pipeline(repositories: dict[Ci, Path]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((repositories["gitlab"] / ".gitlab-ci.yml").read_text(encoding="utf-8"))
    return found


def test_the_pipeline_is_valid_by_the_schema_of_gitlab(repositories: dict[Ci, Path]) -> None:
    options = ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]
    command = [str(CHECK_JSONSCHEMA), *options, str(repositories["gitlab"] / ".gitlab-ci.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok -- validation done\n")


def test_a_merge_request_is_checked_at_both_ends_of_the_range(pipeline: dict[str, Any]) -> None:
    assert pipeline["default"]["image"] == f"python:{NEWEST_PYTHON}-bookworm"
    assert "image" not in pipeline["check"]
    oldest = pipeline["check-oldest-python"]
    assert (oldest["image"], oldest["rules"]) == (f"python:{OLDEST_PYTHON}-bookworm", pipeline["check"]["rules"])
    assert oldest["script"] == ["make install", "make validate", "make plan-check"]


def test_stages_follow_the_order_of_promotion(pipeline: dict[str, Any]) -> None:
    assert pipeline["stages"] == ["check", "dev", "staging", "prod", "drift"]
    assert {pipeline[f"deploy-{name}"]["stage"] for name, _ in TARGETS} == {"dev", "staging", "prod"}


def test_main_is_deployed_and_people_start_the_last_stage(pipeline: dict[str, Any]) -> None:
    rules = {name: pipeline[f"deploy-{name}"]["rules"][-1] for name, _ in TARGETS}
    # Within a rule a manual job blocks, and the job's own exit codes hold: 50 lets the stages after an approval go on.
    assert rules == {"dev": MAIN, "staging": MAIN, "prod": {**MAIN, "when": "manual"}}
    assert {str(pipeline[f"deploy-{name}"]["allow_failure"]) for name, _ in TARGETS} == {"{'exit_codes': 50}"}
    for name, _ in TARGETS:
        assert [(rule["if"], rule["when"]) for rule in pipeline[f"deploy-{name}"]["rules"][:-1]] == [
            (f"{SCHEDULE['if']} || $DESTROY", "never"),
            (f'$ENVIRONMENT && $ENVIRONMENT != "{name}"', "never"),
        ]
        (destroy,) = pipeline[f"destroy-{name}"]["rules"]
        assert (destroy["when"], f'$DESTROY && $ENVIRONMENT == "{name}"' in destroy["if"]) == ("manual", True)


@pytest.mark.parametrize(
    ("code", "failed", "exit_code"), [(0, "", 0), (2, "chat\n", 50), (2, None, 2)], ids=["all", "some", "none"]
)
def test_some_failures_let_the_next_stage_go_on_and_fail_the_last_job(
    code: int, failed: str | None, exit_code: int, pipeline: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "failed-dev").write_text("talk\n", encoding="utf-8")
    write = "" if failed is None else f"\t@printf '{failed}' > build/failed-staging\n"
    makefile = f"deploy:\n\t@echo $(WITHOUT) > without\n{write}\t@exit {code}\n"
    makefile = makefile.replace("$(WITHOUT)", '"$$WITHOUT"')
    (tmp_path / "Makefile").write_text(makefile.replace("\n'", "\\n'"), encoding="utf-8")
    job = pipeline["deploy-staging"]
    lines = "\n".join(line if isinstance(line, str) else line[0] for line in job["script"])
    script, last = (
        ["bash", "-eo", "pipefail", "-c", text] for text in (lines, "\n".join(pipeline["deployed"]["script"]))
    )
    done = subprocess.run(script, cwd=tmp_path, check=False)
    assert done.returncode == exit_code
    assert (tmp_path / "without").read_text(encoding="utf-8") == "talk \n"
    assert job["allow_failure"] == {"exit_codes": 50}
    assert subprocess.run(last, cwd=tmp_path, check=False).returncode == 1
    assert pipeline["deployed"]["rules"][-1]["when"] == "always"


def test_each_job_has_the_role_of_its_environment_and_a_token_but_no_key(pipeline: dict[str, Any]) -> None:
    for kind, role in (("deploy", "deploy"), ("drift", "read")):
        for name, account in TARGETS:
            job = pipeline[f"{kind}-{name}"]
            assert job["extends"] == ".aws"
            arn = f"arn:aws:iam::{account}:role/seatrial-{name}-{role}"
            assert {key: job["variables"][key] for key in ("AWS_ROLE_ARN", "AWS_REGION")} == {
                "AWS_ROLE_ARN": arn,
                "AWS_REGION": "us-east-1",
            }
    assert pipeline[".aws"]["id_tokens"] == {"AWS_ID_TOKEN": {"aud": "https://gitlab.com"}}
    assert "extends" not in pipeline["check"]


def test_a_job_is_as_long_as_a_session_and_says_what_goes_on_when_it_ends_first(pipeline: dict[str, Any]) -> None:
    assert job_s("gitlab") == min(LONGEST_DEPLOYMENT_S, 12 * 3600)
    for name, _ in TARGETS:
        job = pipeline[f"deploy-{name}"]
        assert (job["timeout"], job["variables"]["RUNNER_SCRIPT_TIMEOUT"]) == ("720 minutes", "710m")
        assert job["after_script"] == [f'test "$CI_JOB_STATUS" = success || make deploy-ended ENV={name}']


def test_the_readme_says_that_aws_does_not_know_the_approval(repositories: dict[Ci, Path]) -> None:
    text = (repositories["gitlab"] / "README.md").read_text(encoding="utf-8")
    assert "AWS does not know GitLab's environments: every role trusts each job of `main`." in text
    assert "the approval of `prod`" in text


def test_every_need_is_a_job_of_the_same_or_an_earlier_stage(pipeline: dict[str, Any]) -> None:
    assert [need["job"] for need in pipeline["comment"]["needs"]] == ["check"]
    assert pipeline["comment"]["stage"] == pipeline["check"]["stage"] == "check"


class Notes(BaseHTTPRequestHandler):
    """The notes of a merge request."""

    notes: list[dict[str, Any]]

    def do_GET(self) -> None:
        page = self.notes if self.path.endswith("&page=1") else []
        self._answer({"id": 7} if self.path.endswith("/user") else page)

    def do_POST(self) -> None:
        self.notes.append({"id": len(self.notes) + 1, "author": {"id": 7}, **self._sent()})
        self._answer(self.notes[-1])

    def do_PUT(self) -> None:
        note = self.notes[int(self.path.rpartition("/")[2]) - 1]
        note.update(self._sent())
        self._answer(note)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its own name)
        """Say nothing."""

    def _sent(self) -> dict[str, Any]:
        assert self.headers["PRIVATE-TOKEN"] == "the-token"
        sent: dict[str, Any] = yaml.safe_load(self.rfile.read(int(self.headers["Content-Length"])))
        return sent

    def _answer(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    quoted = "<!-- seatrial diff -->\nof a person"
    Notes.notes = [{"id": each, "author": {"id": 1}, "body": body} for each, body in ((1, "Looks good"), (2, quoted))]
    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("CI_API_V4_URL", f"http://127.0.0.1:{server.server_port}/api/v4")
        monkeypatch.setenv("CI_PROJECT_ID", "7")
        monkeypatch.setenv("CI_MERGE_REQUEST_IID", "3")
        monkeypatch.setenv("COMMENT_TOKEN", "the-token")
        yield Notes.notes
        server.shutdown()


def test_the_note_is_written_once_and_then_updated(
    repositories: dict[Ci, Path], notes: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, file = repositories["gitlab"] / ".gitlab" / "comment.py", tmp_path / "diff.md"
    monkeypatch.setattr("sys.argv", ["comment.py", str(file)])
    for text in ("one", "two"):
        file.write_text(text, encoding="utf-8")
        runpy.run_path(str(script))
        others = ["Looks good", "<!-- seatrial diff -->\nof a person"]
        assert [note["body"] for note in notes] == [*others, f"<!-- seatrial diff -->\n{text}"]
