"""How a repository lives on: what a later release, or another environment, changes of what was written."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import compress, decompress

import pytest
import yaml

from seatrial.repository.upgrade import conflicts, environment_problems, planned_changes, read_record, write_changes
from seatrial.repository.write import RECORD
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.repository.answers import Ci
    from tests.command_line import CommandLine

    Upgrade = Callable[..., tuple[int, str]]

UNWRITTEN = "no release writes it any more, and it was changed here: delete it if it is not needed"
QA = "name: qa\naccount: '444444444444'\nregion: eu-west-1\nowner: platform\npromotion: {source: dev}\n"


@pytest.fixture
def team(repositories: dict[Ci, Path], tmp_path: Path) -> Path:
    """Return a committed repository of GitHub."""
    folder = tmp_path / "team"
    shutil.copytree(repositories["github"], folder)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def git(folder: Path, *arguments: str) -> None:
    author = ("-c", "user.name=team", "-c", "user.email=team@example.com")
    command = [shutil.which("git") or "git", *author, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "work")


def write_as_before(folder: Path, path: str, text: str | None) -> None:
    """Make a file one that an earlier release wrote so; None is a file that it did not write."""
    record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    if text is None:
        del record["files"][path]
        (folder / path).unlink()
    else:
        record["files"][path] = b64encode(compress(text.encode())).decode()
        (folder / path).write_text(text, encoding="utf-8")
    record["seatrial"] = "0.0.9"
    (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def texts(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def upgrade(team: Path, command_line: CommandLine) -> Upgrade:
    def run(*options: str) -> tuple[int, str]:
        done = command_line.run("init", str(team), "--upgrade", *options, folder=team)
        return done.returncode, f"{done.stdout}{done.stderr}"

    return run


def test_what_a_release_changes_is_merged_into_what_the_team_made(team: Path, upgrade: Upgrade) -> None:
    makefile, readme = ((team / name).read_text(encoding="utf-8") for name in ("Makefile", "README.md"))
    write_as_before(team, "Makefile", makefile.replace("rm -rf .venv", "rm -rf venv"))
    edit(team / "Makefile", "# What the workflows run", "# Ours. What the workflows run")
    write_as_before(team, "README.md", readme.replace("# endpoints\n", "# Old\n"))
    edit(team / "README.md", "# Old\n", "# Mine\n")
    write_as_before(team, "cdk.json", "{}\n")
    write_as_before(team, "app.py", "old\n")
    (team / "app.py").unlink()
    for name in ("gone.txt", "gone-and-edited.txt"):
        write_as_before(team, name, "old\n")
    edit(team / "gone-and-edited.txt", "old", "ours")
    write_as_before(team, ".vscode/settings.json", None)
    (team / "package.json").write_bytes(b"\xff")
    edit(team / "endpoints" / "chat.yaml", "An example", "Ours")
    before = texts(team)

    code, output = upgrade()
    assert (code, texts(team)) == (1, before)
    told = dict(
        line.removeprefix(f"{team}/").split(": ", 1) for line in output.splitlines() if line.startswith(f"{team}/")
    )
    assert told == {
        ".seatrial-template.json": "changed",
        ".vscode/settings.json": "added",
        "Makefile": "merged",
        "README.md": "conflict",
        "app.py": "kept: it was deleted here",
        "cdk.json": "changed",
        "gone-and-edited.txt": f"kept: {UNWRITTEN}",
        "gone.txt": "removed",
        "package.json": "kept: it is no text file",
    }
    assert "+\t@rm -rf .venv node_modules" in output
    assert "would be upgraded (0.0.9 to 0.1.0), 1 with conflicts" in output

    code, output = upgrade("--write")
    assert (code, "SEA672" in output, texts(team)) == (2, True, before)
    commit(team)
    assert upgrade("--write")[0] == 1
    after = texts(team)
    assert after["Makefile"].decode() == makefile.replace("# What the workflows run", "# Ours. What the workflows run")
    conflict = "<<<<<<< this repository\n# Mine\n=======\n# endpoints\n>>>>>>> Seatrial 0.1.0\n"
    assert after["README.md"].decode() == readme.replace("# endpoints\n", conflict)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {
        ".seatrial-template.json",
        ".vscode/settings.json",
        "Makefile",
        "README.md",
        "cdk.json",
        "gone.txt",
    }
    readme_left = f"{team}/README.md: conflict: choose a side of each first\n"
    left = f"{team}/package.json: kept: it is no text file\n{team}: nothing to upgrade (0.1.0 to 0.1.0)"
    assert upgrade("--write", "--force") == (1, f"{readme_left}{left}, 1 with conflicts\n")
    assert [each.rule for each in conflicts(team / "environments")] == ["SEA673"]
    (team / "README.md").write_text(readme, encoding="utf-8")
    assert upgrade("--write", "--force") == (0, f"{left}\n")
    assert list(conflicts(team / "environments")) == []


def test_links_line_ends_and_modes_stay_as_they_are(team: Path, upgrade: Upgrade) -> None:
    makefile = (team / "Makefile").read_text(encoding="utf-8")
    write_as_before(team, "Makefile", makefile.replace("rm -rf .venv", "rm -rf venv"))
    old = (team / "Makefile").read_bytes().replace(b"\n", b"\r\n")
    (team / "Makefile").write_bytes(old)
    (team / "Makefile").chmod(0o755)
    write_as_before(team, "cdk.json", "{}\n")
    for name in ("README.md", "cdk.json"):
        (team / name).rename(team / f"{name}.ours")
    (team / "README.md").symlink_to("README.md.ours")
    (team / "cdk.json").symlink_to("nowhere")
    (team / "app.py").write_bytes(b"text\0")
    code, output = upgrade("--write", "--force")
    assert code == 0
    assert f"{team}/cdk.json: kept: it is a link: upgrade what it leads to" in output
    assert (team / "README.md").is_symlink()
    assert (team / "cdk.json").is_symlink()
    assert (team / "Makefile").read_bytes() == makefile.encode().replace(b"\n", b"\r\n")
    assert (team / "Makefile").stat().st_mode & 0o777 == 0o755
    assert (team / "app.py").read_bytes() == b"text\0"


def test_a_record_can_name_no_file_of_the_team_nor_of_git(team: Path, upgrade: Upgrade) -> None:
    for path in ("endpoints/chat.yaml", "environments/dev.yaml", ".git/config"):
        text = (team / path).read_text(encoding="utf-8")
        write_as_before(team, path, text)
        code, output = upgrade("--write", "--force")
        assert (code, "SEA671" in output, (team / path).read_text(encoding="utf-8")) == (2, True, text)
        git(team, "checkout", "--", RECORD)


def test_a_newer_releases_files_are_not_written_over(team: Path, upgrade: Upgrade) -> None:
    record = json.loads((team / RECORD).read_text(encoding="utf-8"))
    (team / RECORD).write_text(json.dumps({**record, "seatrial": "9.9.9"}), encoding="utf-8")
    commit(team)
    code, output = upgrade("--write")
    assert (code, "SEA671: a newer release wrote it, 9.9.9" in output) == (2, True)


def test_a_workflow_that_was_renamed_is_missed(team: Path, upgrade: Upgrade) -> None:
    (team / "environments" / "qa.yaml").write_text(QA, encoding="utf-8")
    workflows = team / ".github" / "workflows"
    (workflows / "deploy.yml").rename(workflows / "release.yml")
    commit(team)
    assert upgrade("--write")[0] == 0
    (problem,) = environment_problems(team / "environments")
    assert (problem.rule, problem.message.partition(":")[0]) == ("SEA670", "no job deploys qa")


def test_the_last_environment_is_not_removed(team: Path, upgrade: Upgrade) -> None:
    for file in (team / "environments").glob("*.yaml"):
        file.unlink()
    code, output = upgrade()
    assert (code, "SEA483: no environment on AWS is left" in output) == (2, True)


def test_a_new_environment_is_red_until_the_workflows_know_it(team: Path, command_line: CommandLine) -> None:
    environments = team / "environments"
    assert list(environment_problems(environments)) == []
    (environments / "qa.yaml").write_text(QA, encoding="utf-8")
    edit(environments / "staging.yaml", "source: dev", "source: qa")
    edit(environments / "prod.yaml", "333333333333", "555555555555")
    found = {
        (Path(one.place.file).name, one.place.field, one.rule): one.message
        for one in environment_problems(environments)
    }
    assert found == {
        ("prod.yaml", "account", "SEA670"): "the workflows were written for 333333333333, not 555555555555",
        ("qa.yaml", "", "SEA670"): "no workflow knows qa",
        ("staging.yaml", "promotion.source", "SEA670"): "the workflows were written for dev, not qa",
    }
    done = command_line.run("validate", "endpoints", "-e", "dev", folder=team)
    assert (done.returncode, done.stderr.count("SEA670")) == (2, 3)

    record = read_record(team)
    write_changes(team, planned_changes(team, record, {}), force=True)
    assert list(environment_problems(environments)) == []
    jobs = yaml.safe_load((team / ".github/workflows/deploy.yml").read_text(encoding="utf-8"))["jobs"]
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "deploy-dev": None,
        "deploy-qa": "deploy-dev",
        "deploy-staging": "deploy-qa",
        "deploy-prod": "deploy-staging",
    }
    assert "555555555555:role/seatrial-prod-deploy" in str(jobs["deploy-prod"])
    assert "ENVIRONMENTS := dev qa staging prod\n" in (team / "Makefile").read_text(encoding="utf-8")
    # Two of one source wait for it alone, not for each other's approval; the embedded AWS has no job.
    edit(environments / "prod.yaml", "source: staging", "source: qa")
    edit(environments / "dev.yaml", "tags:", "promotion: {source: local}\ntags:")
    (environments / "local.yaml").write_text(
        "name: local\naccount: '000000000000'\nregion: us-east-1\n", encoding="utf-8"
    )
    assert [one.place.file for one in environment_problems(environments)] == [f"{environments}/prod.yaml"]
    write_changes(team, planned_changes(team, read_record(team), {}), force=True)
    jobs = yaml.safe_load((team / ".github/workflows/deploy.yml").read_text(encoding="utf-8"))["jobs"]
    needs = [(name, job.get("needs")) for name, job in jobs.items()]
    assert needs == [
        ("deploy-dev", None),
        ("deploy-qa", "deploy-dev"),
        ("deploy-prod", "deploy-qa"),
        ("deploy-staging", "deploy-qa"),
    ]
    (environments / "prod.yaml").unlink()
    assert [one.message for one in environment_problems(environments)] == [
        "the workflows deploy prod, which has no file"
    ]


def test_another_ci_takes_the_place_of_the_one_before(team: Path) -> None:
    edit(team / ".github/workflows/drift.yml", "0 5 * * *", "0 6 * * *")
    outcomes = {one.path: one.outcome for one in planned_changes(team, read_record(team), {"ci": "gitlab"})}
    assert outcomes[".gitlab-ci.yml"] == "added"
    assert outcomes[".github/workflows/deploy.yml"] == "removed"
    assert outcomes[".github/workflows/drift.yml"] == "kept"
    assert (outcomes["CODEOWNERS"], outcomes[".github/CODEOWNERS"]) == ("added", "removed")
    assert not [path for path in outcomes if path.startswith(("endpoints/", "environments/"))]


@pytest.mark.parametrize(
    "text", [None, "{", '{"answers": {"ci": "jenkins"}}', '{"seatrial": 1, "environments": 3}', "[]"]
)
def test_without_a_record_it_is_told_what_helps(
    text: str | None, team: Path, upgrade: Upgrade, command_line: CommandLine
) -> None:
    before = texts(team)
    (team / RECORD).unlink() if text is None else (team / RECORD).write_text(text, encoding="utf-8")
    code, output = upgrade()
    assert (code, "SEA671" in output, "--update" in output) == (2, True, text is None)
    if text is None:
        (team / "Makefile").write_text("mine:\n", encoding="utf-8")
        answers = ("--yes", "--ci=github", "--name=endpoints", "--repository=acme/endpoints", "--owner=@acme/platform")
        assert command_line.run("init", str(team), "--update", *answers, folder=team).returncode == 0
        # What differs has no base: all of it is a conflict.
        assert set(read_record(team).texts) == {
            path for path in before if not path.startswith(("endpoints/", "environments/", RECORD, "Makefile"))
        }
        assert upgrade()[1].count(": conflict\n") == 1


def test_the_record_holds_each_text_that_was_written(team: Path) -> None:
    record = json.loads((team / RECORD).read_text(encoding="utf-8"))
    held = {path: decompress(b64decode(text)) for path, text in record["files"].items()}
    assert held == {
        path: text for path, text in texts(team).items() if not path.startswith(("endpoints/", "environments/", RECORD))
    }
    assert len(json.dumps(record)) < 200_000


@pytest.mark.parametrize("options", [("--preset=a",), ("--account=a=1",), ("--region=eu-west-1",), ("--update",)])
def test_what_decides_new_environments_does_not_go_with_an_upgrade(options: tuple[str, ...], upgrade: Upgrade) -> None:
    assert upgrade(*options)[0] == 2


def test_what_can_not_be_undone_is_not_written(team: Path) -> None:
    shutil.rmtree(team / ".git")
    write_as_before(team, "cdk.json", "{}\n")
    with pytest.raises(SpecError, match="SEA672"):
        write_changes(team, planned_changes(team, read_record(team), {}), force=False)
    assert (team / "cdk.json").read_text(encoding="utf-8") == "{}\n"
