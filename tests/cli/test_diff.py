"""`seatrial diff` as a user runs it; all but one test have an app that writes a template without the CDK."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import REPOSITORY, SPECS
from tests.cli.test_images import NOBODY
from tests.operations.sample_stack import Document, properties, sample_document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC, STACK = SPECS[1], "seatrial-dev-llama-2-7b-chat"
APP = """
import json, os, pathlib, sys
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
if not pathlib.Path("stack.json").exists():
    sys.exit("endpoints/chat.yaml: SEA404: found no stack")
if pathlib.Path(context["endpoints"]).resolve() != pathlib.Path("endpoints").resolve():
    sys.exit("asked for the endpoints of another checkout")
name = f"seatrial-{context['environment']}-{context['endpoint']}.template.json"
(pathlib.Path(os.environ["CDK_OUTDIR"]) / name).write_text(pathlib.Path("stack.json").read_text())
"""
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def write_stack(project: Path, *, image: str = "", threshold: int = 5) -> Document:
    document = sample_document()
    if image:
        properties(document, "Model")["PrimaryContainer"]["Image"] = image
    properties(document, "Errors")["Threshold"] = threshold
    (project / "stack.json").write_text(json.dumps(document))
    return document


@pytest.fixture
def app(project: Path) -> Path:
    (project / "cdk.json").write_text(json.dumps({"app": "python app.py", "context": {"flag": True}}))
    (project / "app.py").write_text(APP)
    document = write_stack(project)
    (project / "old.json").write_text(json.dumps(document))
    return project


def git(project: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=project, env=os.environ | GIT, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repository(app: Path) -> Path:
    git(app, "init", "--quiet")
    git(app, "add", ".")
    git(app, "commit", "--quiet", "-m", "first")
    return app


def test_nothing_changes(seatrial: Seatrial, app: Path) -> None:
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{STACK}: old.json → this checkout\n\nNothing changes.\n"


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--check",), 1)])
def test_a_change_is_told_and_fails_only_a_check(
    seatrial: Seatrial, app: Path, options: tuple[str, ...], code: int
) -> None:
    write_stack(app, threshold=3)
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", *options)
    assert (done.returncode, done.stderr) == (code, "")
    assert "No copy that serves is started, stopped or moved." in done.stdout


def test_a_repair_is_compared_as_it_is_deployed(seatrial: Seatrial, app: Path) -> None:
    """The app writes what its context says into the description of an alarm."""
    described = APP.replace(
        '.write_text(pathlib.Path("stack.json").read_text())',
        '.write_text(pathlib.Path("stack.json").read_text().replace("told", f"rollback_alarms={context.get(switch)}"))',
    )
    (app / "app.py").write_text(described.replace("import json", 'switch = "rollback_alarms"\nimport json', 1))
    document = write_stack(app)
    properties(document, "Errors")["AlarmDescription"] = "told"
    (app / "stack.json").write_text(json.dumps(document))
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--fix-forward")
    assert (done.returncode, done.stderr) == (0, "")
    assert "SEA770: rollback by alarms is off for this deployment" in done.stdout
    assert "SEA770" not in seatrial("diff", SPEC, "-e", "dev", "--against", "old.json").stdout
    many = seatrial("diff", "--base", "HEAD", "--fix-forward")
    assert (many.returncode, "needs one SPEC and one -e ENV" in " ".join(many.stderr.split())) == (2, True)


def test_a_folder_of_templates_is_searched_for_the_stack(seatrial: Seatrial, app: Path) -> None:
    (app / "cdk.out").mkdir()
    shutil.copy(app / "old.json", app / "cdk.out" / f"{STACK}.template.json")
    assert seatrial("diff", SPEC, "-e", "dev", "--against", "cdk.out", "--check").returncode == 0


def test_the_document_holds_every_resource(seatrial: Seatrial, app: Path) -> None:
    write_stack(app, image="other")
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--format", "json")
    document = json.loads(done.stdout)
    assert {one["logical_id"] for one in document["resources"]} == set(sample_document()["Resources"])
    assert (document["stack"], document["touches_copies"], document["is_empty"]) == (STACK, True, False)
    again = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--format", "json")
    assert again.stdout == done.stdout


def test_markdown_has_a_row_for_each_change(seatrial: Seatrial, app: Path) -> None:
    write_stack(app, threshold=3)
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--format", "markdown")
    assert [line for line in done.stdout.splitlines() if line.startswith("| `")] == [
        "| `Errors`<br>AWS::CloudWatch::Alarm | updated in place<br>`Threshold` "
        "| **no effect**: No copy depends on it. |  |"
    ]


def test_a_change_that_needs_another_endpoint_is_refused(seatrial: Seatrial, app: Path) -> None:
    document = write_stack(app)
    properties(document, "Config")["ProductionVariants"][0]["InstanceType"] = "ml.g6.2xlarge"
    (app / "stack.json").write_text(json.dumps(document))
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json")
    assert done.returncode == 1
    assert done.stderr.startswith("Endpoint: InstanceType: SEA453: ")
    assert "instances doubled meanwhile" in done.stdout


def test_another_revision_is_synthesized_and_its_checkout_removed(seatrial: Seatrial, repository: Path) -> None:
    write_stack(repository, threshold=3)
    done = seatrial("diff", SPEC, "-e", "dev", "--base", "HEAD", "--check", env=GIT)
    assert (done.returncode, done.stderr) == (1, "")
    assert "Threshold: 5 → 3" in done.stdout
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_the_checkout_is_removed_after_a_failure_too(seatrial: Seatrial, repository: Path) -> None:
    git(repository, "rm", "--quiet", "stack.json")
    git(repository, "commit", "--quiet", "-m", "second")
    write_stack(repository)
    done = seatrial("diff", SPEC, "-e", "dev", "--base", "HEAD", env=GIT)
    assert done.returncode == 1
    assert "SEA450: the app ended with exit code 1:\nendpoints/chat.yaml: SEA404: found no stack" in done.stderr
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_hook_of_git_does_not_lead_astray(seatrial: Seatrial, repository: Path) -> None:
    hook = GIT | {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"}
    assert seatrial("diff", SPEC, "-e", "dev", "--base", "HEAD", "--check", env=hook).returncode == 0


def test_everything_is_created_that_the_revision_has_no_lock_for(seatrial: Seatrial, repository: Path) -> None:
    git(repository, "rm", "--quiet", "--cached", "endpoints/llama-2-7b-chat.lock.json")
    git(repository, "commit", "--quiet", "-m", "second")
    done = seatrial("diff", SPEC, "-e", "dev", "--base", "HEAD", "--format", "json", env=GIT)
    assert {one["action"] for one in json.loads(done.stdout)["resources"]} == {"created"}


@pytest.mark.parametrize("revision", ["nosuch", "--help", ""])
def test_a_revision_that_is_not_there(seatrial: Seatrial, repository: Path, revision: str) -> None:
    done = seatrial("diff", SPEC, "-e", "dev", f"--base={revision}", env=GIT)
    assert (done.returncode, "SEA452" in done.stderr) == (2, True)


def test_no_repository(seatrial: Seatrial, app: Path) -> None:
    done = seatrial("diff", SPEC, "-e", "dev", "--base", "HEAD", env={"GIT_CEILING_DIRECTORIES": str(app.parent)})
    assert (done.returncode, "SEA452" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("cdk_json", "code", "words"),
    [
        (None, 2, "SEA450: no cdk.json in its folder or above"),
        ("{", 2, "SEA450: it can't be read, or names no app"),
        ("{}", 2, "SEA450: it can't be read, or names no app: 'app'"),
        ('{"app": "nosuch-program"}', 1, "SEA450: the app can't be started: No such file or directory"),
        ('{"app": "python -c \\"raise SystemExit(3)\\""}', 1, "SEA450: the app ended with exit code 3"),
        ('{"app": "python -c 0"}', 1, f"SEA450: the app has no stack {STACK}"),
    ],
)
def test_an_app_that_fails(seatrial: Seatrial, app: Path, cdk_json: str | None, code: int, words: str) -> None:
    (app / "cdk.json").unlink()
    if cdk_json is not None:
        (app / "cdk.json").write_text(cdk_json)
    done = seatrial("diff", SPEC, "-e", "dev", "--against", "old.json")
    assert done.returncode == code
    assert words in done.stderr


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none.json", "none.json: SEA101: it can't be read: No such file or directory"),
        ("endpoints", f"endpoints/{STACK}.template.json: SEA101: it can't be read: No such file or directory"),
        (SPEC, f"{SPEC}: SEA451: not a CloudFormation template: "),
    ],
)
def test_a_template_that_can_not_be_read(seatrial: Seatrial, app: Path, path: str, message: str) -> None:
    done = seatrial("diff", SPEC, "-e", "dev", "--against", path)
    assert (done.returncode, done.stderr.startswith(message)) == (2, True)


def test_two_old_sides_are_one_too_many(seatrial: Seatrial, app: Path) -> None:
    assert seatrial("diff", SPEC, "-e", "dev", "--against", "old.json", "--base", "HEAD").returncode == 2


def test_no_credentials(seatrial: Seatrial, app: Path) -> None:
    nothing = NOBODY | {"HOME": "/nonexistent"}
    done = seatrial("diff", SPEC, "-e", "dev", env=nothing)
    message = "dev: SEA503: there are no AWS credentials: Unable to locate credentials\n"
    assert (done.returncode, done.stderr.startswith(message)) == (1, True)


def test_the_app_of_this_repository(seatrial: Seatrial, tmp_path: Path) -> None:
    """Synthesize really, as a user does in a checkout."""
    (tmp_path / "empty.json").write_text('{"Resources": {}}')
    options = ("--against", str(tmp_path / "empty.json"), "--format", "json")
    done = seatrial("diff", SPEC, "-e", "dev", *options, folder=REPOSITORY)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert {one["action"] for one in document["resources"]} == {"created"}
    kinds = {effect["kind"] for one in document["resources"] for effect in one["effects"]}
    assert {"starts", "download"} <= kinds
    assert "unknown" not in kinds
