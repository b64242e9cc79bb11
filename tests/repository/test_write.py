"""What is written into which folder, and that nothing is half-written."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from typer.testing import CliRunner

import seatrial
from seatrial.cli.app import app
from seatrial.deployment.load import load_deployment
from seatrial.locks.lock_file import locked_environments
from seatrial.operations.app import deploy_command_of
from seatrial.probe.run import check_tools
from seatrial.repository.answers import Ci, TargetEnvironment, new_targets, parse_accounts, targets_of
from seatrial.repository.shipped import PACKAGES, requirements_text
from seatrial.repository.write import EXAMPLE, repository_files, write_repository
from seatrial.specs.load import load_spec
from seatrial.specs.pipeline import promotion_order
from seatrial_base.catalog.presets import PRESETS
from seatrial_base.errors import SpecError
from tests.docs.command_of import command_of
from tests.docs.test_commands import commands
from tests.make import run_make
from tests.repository.conftest import ACCOUNTS, answers

if TYPE_CHECKING:
    from tests.command_line import CommandLine

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("ci", get_args(Ci))
def test_the_example_is_locked_in_every_environment(repositories: dict[Ci, Path], ci: Ci) -> None:
    folder = repositories[ci]
    assert locked_environments(folder / "endpoints" / "chat.yaml") == frozenset(ACCOUNTS)
    order = promotion_order(folder / "environments")
    assert [(one.name, one.account, one.promotion.source, one.promotion.approval) for one in order] == [
        ("dev", ACCOUNTS["dev"], None, "none"),
        ("staging", ACCOUNTS["staging"], "dev", "none"),
        ("prod", ACCOUNTS["prod"], "staging", "manual"),
    ]
    assert targets_of(order, folder / "environments") == new_targets(ACCOUNTS, "us-east-1")


def test_every_hole_is_filled(repositories: dict[Ci, Path]) -> None:
    for folder in repositories.values():
        for path, content in files(folder).items():
            assert b"<<" not in content, path
            assert content.endswith(b"\n"), path


def test_app_flags_and_versions_are_ours(repositories: dict[Ci, Path]) -> None:
    folder = repositories["none"]
    for name in ("app.py", "cdk.json"):
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes()
    own = (folder / "seatrial.txt").read_text(encoding="utf-8").splitlines()[1:]
    names = ("seatrial", "seatrial-base", "seatrial-lint", "seatrial-load")
    assert own == [f"{name}=={seatrial.__version__}" for name in names]
    locked = json.loads((folder / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    ours = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert locked["node_modules/aws-cdk"] == ours["node_modules/aws-cdk"]
    pinned = json.loads((folder / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert pinned == {"aws-cdk": ours["node_modules/aws-cdk"]["version"]}


def test_the_same_answers_give_the_same_bytes(repositories: dict[Ci, Path], tmp_path: Path) -> None:
    write_repository(tmp_path / "again", answers("github"))
    assert files(tmp_path / "again") == files(repositories["github"])


def test_the_endpoint_is_written_from_a_preset_and_locked(tmp_path: Path) -> None:
    preset = next(one for one in PRESETS.rows if one.name == "qwen3-32b.g5.12xlarge.eagle3.published")
    write_repository(tmp_path, replace(answers("none"), preset=preset))

    spec = load_spec(tmp_path / "endpoints" / "chat.yaml", "dev", environments=tmp_path / "environments")
    assert (spec.endpoint.name, spec.endpoint.model.hub_id) == ("chat", preset.model)
    assert locked_environments(spec.path) == frozenset(ACCOUNTS)


def test_a_used_folder_is_refused_and_a_clone_without_files_is_not(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_repository(tmp_path, answers("none"))
    before = files(tmp_path)
    with pytest.raises(SpecError) as caught:
        write_repository(tmp_path, answers("none"))
    assert [problem.rule for problem in caught.value.problems] == ["SEA481"]
    assert files(tmp_path) == before


def test_an_update_adds_what_is_absent_and_keeps_what_differs(repositories: dict[Ci, Path], tmp_path: Path) -> None:
    write_repository(tmp_path, answers("github"))
    (tmp_path / "Makefile").write_text("mine:\n", encoding="utf-8")
    (tmp_path / "README.md").unlink()
    (tmp_path / "endpoints" / "chat.yaml").rename(tmp_path / "endpoints" / "mine.yaml")
    done = write_repository(tmp_path, answers("github"), update=True)
    assert (done.written, done.kept) == (("README.md",), ("Makefile",))
    assert (tmp_path / "Makefile").read_text(encoding="utf-8") == "mine:\n"
    assert not (tmp_path / "endpoints" / "chat.yaml").exists()


def test_what_can_not_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "schema").write_text("a file where a folder must be", encoding="utf-8")
    before = files(tmp_path)
    with pytest.raises(SpecError) as caught:
        write_repository(tmp_path, answers("none"), update=True)
    assert [problem.rule for problem in caught.value.problems] == ["SEA101"]
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["schema"]


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (["dev"], ["'dev'"]),
        (["dev=", "=111111111111"], ["dev=", "=111111111111"]),
        (["dev=111111111111", "dev=222222222222"], ["dev is named twice"]),
    ],
)
def test_accounts_of_another_form_are_all_told(given: list[str], messages: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_accounts(given)
    assert {problem.rule for problem in caught.value.problems} == {"SEA482"}
    assert len(caught.value.problems) == len(messages)


def test_without_a_terminal_nothing_is_asked(command_line: CommandLine, tmp_path: Path) -> None:
    done = command_line.run("init", "team", "--ci", "none", folder=tmp_path)
    assert (done.returncode, "SEA482: there is no terminal" in done.stderr, list(tmp_path.iterdir())) == (2, True, [])


def test_every_wrong_answer_is_told_and_nothing_written(command_line: CommandLine, tmp_path: Path) -> None:
    options = ("--ci", "codepipeline", "--account", "Dev=1", "--repository", "acme", "--owner", "acme", "--yes")
    done = command_line.run("init", "team", *options, folder=tmp_path)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if "SEA482" in line]
    assert [line.partition(":")[0] for line in told] == [
        "--repository",
        "--owner",
        "--account",
        "--account",
        "--connection-arn",
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_defaults_make_a_repository_whose_makefile_knows_its_targets(
    command_line: CommandLine, tmp_path: Path
) -> None:
    done = command_line.run("init", "team", "--yes", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = run_make(tmp_path / "team", "help")
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    deploying = "deploy destroy deploy-ended check-environments"
    wanted = (
        f"help install validate plan publish plan-check lint synth test diff {deploying} drift upgrade schema clean"
    )
    assert names == wanted.split()


SIMPLE = "https://pypi.example.org/simple"
ADDRESSES = {
    ("index_url", SIMPLE): [f"--index-url {SIMPLE}", "seatrial==0.1.0"],
    ("index_url", "https://ci:${TOKEN}@pypi.example.org/simple"): [
        "--index-url https://ci:${TOKEN}@pypi.example.org/simple",
        "seatrial==0.1.0",
    ],
    ("find_links", SIMPLE): ["--no-index", f"--find-links {SIMPLE}", "seatrial==0.1.0"],
    ("git", "https://git.example.org/a/seatrial.git@0f0e"): [
        "seatrial @ git+https://git.example.org/a/seatrial.git@0f0e"
    ],
    ("git", "ssh://git@git.example.org/a/seatrial.git"): [
        "seatrial @ git+ssh://git@git.example.org/a/seatrial.git@v0.1.0"
    ],
}


@pytest.mark.parametrize("option", ADDRESSES, ids=lambda option: f"{option[0]}-{option[1][:14]}")
def test_seatrial_comes_from_the_address_that_is_given(option: tuple[str, str]) -> None:
    given: dict[str, Any] = {option[0]: option[1]}
    text = repository_files(replace(answers("github"), **given))
    own = text["seatrial.txt"].splitlines()[1:]
    lines = ADDRESSES[option]
    assert own[: len(lines)] == lines
    if option[0] == "git":
        assert own[1].endswith("#subdirectory=packages/seatrial-base")
    # Of an index that replaces PyPI everything comes; a variable of it is a secret of each job that installs.
    assert text["requirements.txt"].startswith(lines[0] if option[0] == "index_url" else "annotated-doc==")
    by_hand = "pip install --index-url" if option[0] == "index_url" else "pip install --constraint"
    assert text["README.md"].count(by_hand) == 3
    workflow = text[".github/workflows/pull-request.yml"]
    wanted = 2 if "${TOKEN}" in option[1] else 0
    assert workflow.count("        run: make install\n        env:\n          TOKEN: ${{ secrets.TOKEN }}\n") == wanted


def test_wheels_of_a_folder_are_installed_by_their_hashes_alone(tmp_path: Path) -> None:
    wheels, team = tmp_path / "wheels", tmp_path / "new"
    wheels.mkdir()
    given = replace(answers("none"), find_links="../wheels")
    with pytest.raises(SpecError) as caught:
        repository_files(given, team)
    assert [(one.rule, one.place.file) for one in caught.value.problems] == [("SEA482", "--find-links")] * 4
    for name in ("seatrial", "seatrial_base", "seatrial_lint", "seatrial_load"):
        (wheels / f"{name}-{seatrial.__version__}-py3-none-any.whl").write_bytes(b"wheel")
    lines = repository_files(given, team)["seatrial.txt"].splitlines()
    assert lines[1:3] == ["--no-index", "--find-links ../wheels"]
    digest = sha256(b"wheel").hexdigest()
    assert lines[3:] == [f"{name}=={seatrial.__version__} --hash=sha256:{digest}" for name in PACKAGES]


@pytest.mark.parametrize(
    ("option", "address"),
    [
        ("index_url", "https://ci:hunter2@pypi.example.org/simple"),
        ("index_url", "https://glpat-0123456789abcdefghij@pypi.example.org/simple"),
        ("find_links", "https://ci:hunter2@pypi.example.org/wheels"),
        ("git", "https://ci:hunter2@git.example.org/a/seatrial.git"),
        ("git", "git@git.example.org:a/seatrial.git"),
        ("index_url", "pypi.example.org/wheels"),
        ("index_url", f"{SIMPLE}?token=abcdef123456"),
        ("find_links", f"{SIMPLE}?X-Amz-Signature=abcdef"),
        ("find_links", f"{SIMPLE}\n--extra-index-url https://other.example.org"),
        ("find_links", "s3://bucket/wheels"),
        ("find_links", "my wheels"),
    ],
)
def test_an_address_with_a_secret_or_of_no_form_is_refused_and_not_repeated(option: str, address: str) -> None:
    given: dict[str, Any] = {option: address}
    with pytest.raises(SpecError) as caught:
        replace(answers("github"), **given).check()
    (problem,) = caught.value.problems
    assert (problem.rule, problem.place.file) == ("SEA482", f"--{option.replace('_', '-')}")
    assert ("credentials" in problem.message) == ("hunter2" in address or "glpat" in address)
    assert address not in f"{problem.message}{problem.hint}"


def test_what_a_team_installs_is_what_the_lock_has() -> None:
    """As `make lock` writes it: every package has the hashes of its files."""
    options = (
        "--frozen",
        "--no-dev",
        "--extra=cdk",
        "--extra=node",
        "--no-emit-workspace",
        "--no-annotate",
        "--no-header",
    )
    command = [f"{Path(sys.executable).parent / 'uv'}", "export", "--quiet", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert requirements_text(answers("none")) == done.stdout


def test_an_environment_may_have_a_region_of_its_own() -> None:
    targets = new_targets(parse_accounts(["dev=111111111111", "live=222222222222@cn-north-1"]), "us-east-1")
    assert [target.region for target in targets] == ["us-east-1", "cn-north-1"]
    text = repository_files(replace(answers("github"), targets=targets))
    deploy = text[".github/workflows/deploy.yml"]
    assert "role-to-assume: arn:aws-cn:iam::222222222222:role/seatrial-live-deploy" in deploy
    assert "aws-region: cn-north-1" in deploy
    assert "region: cn-north-1" in text["environments/live.yaml"]
    wrong = new_targets({"dev": "111111111111@nowhere", "live": "222222222222@cn-north-1"}, "us-east-1")
    with pytest.raises(SpecError) as caught:
        replace(answers("codepipeline"), targets=wrong).check()
    assert [problem.place.file for problem in caught.value.problems] == ["--region", "--account"]


def test_regions_decide_the_partition_of_the_roles() -> None:
    target = TargetEnvironment("prod", "111111111111", "cn-north-1", None, "none")
    assert target.deploy_role_arn == "arn:aws-cn:iam::111111111111:role/seatrial-prod-deploy"


def test_what_is_not_given_is_asked(tmp_path: Path) -> None:
    answered = "gitlab\nllm\nacme/llm\ndev=111111111111 live=333333333333\n\n"
    done = CliRunner().invoke(app, ["init", str(tmp_path / "team")], input=answered)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "team" / ".gitlab-ci.yml").is_file()
    order = promotion_order(tmp_path / "team" / "environments")
    assert [(one.name, one.account, one.owner) for one in order] == [
        ("dev", "111111111111", "platform"),
        ("live", "333333333333", "platform"),
    ]
    assert "@acme/platform" in (tmp_path / "team" / "CODEOWNERS").read_text(encoding="utf-8")


CODEOWNERS: dict[Ci, str] = {"github": ".github/CODEOWNERS"}


@pytest.mark.parametrize(
    ("path", "is_owned"),
    [
        ("endpoints/chat.yaml", False),
        ("endpoints/team/chat.lock.json", False),
        ("endpoints/cdk.json", True),
        ("endpoints/team/cdk.json", True),
        ("environments/dev.yaml", True),
        ("products/chat.yaml", True),
        ("serving_templates/vllm/container.env.j2", True),
        ("yaml/__init__.py", True),
        ("stacks/seatrial_stacks/__init__.py", True),
        (".github/workflows/deploy.yml", True),
        ("Makefile", True),
    ],
)
def test_who_may_write_specs_alone_can_add_no_code(repositories: dict[Ci, Path], path: str, *, is_owned: bool) -> None:
    """A module at the root is imported before any package, and a `cdk.json` beside specs would be their app."""
    for ci, repository in repositories.items():
        lines = (repository / CODEOWNERS.get(ci, "CODEOWNERS")).read_text(encoding="utf-8").splitlines()
        rows = [line.split() for line in lines if line and not line.startswith(("#", "["))]
        rows = [[pattern.removeprefix("!"), *owners] for pattern, *owners in rows]
        matched = [
            owners
            for pattern, *owners in rows
            if pattern in ("*", Path(path).name) or (pattern.startswith("/") and f"/{path}".startswith(pattern))
        ]
        assert bool(matched and matched[-1]) is is_owned, ci


def test_the_makefile_checks_products_where_there_are_any(repositories: dict[Ci, Path], tmp_path: Path) -> None:
    for folder in ("endpoints", "products"):
        there = tmp_path / folder
        (there / folder).mkdir(parents=True)
        (there / folder / "chat.yaml").touch()
        for name in ("Makefile", "requirements.txt", "seatrial.txt", "package.json", "package-lock.json"):
            (there / name).write_bytes((repositories["none"] / name).read_bytes())
    asked = ("--dry-run", "--assume-old=.venv/.installed", "validate", "plan-check")

    def run(folder: str) -> str:
        return run_make(tmp_path / folder, *asked).stdout

    assert ("products" in run("endpoints"), "seatrial validate endpoints" in run("endpoints")) == (False, True)
    products = ["products validate products", "products plan products --check", "products publish products --check"]
    assert [f"seatrial {each}" in run("products") for each in products] == [True, True, True]
    assert "seatrial validate endpoints" not in run("products")


def test_an_update_does_not_leave_the_folder_through_a_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "team", tmp_path / "elsewhere"
    for made in (folder, elsewhere):
        made.mkdir()
    (folder / ".github").symlink_to(elsewhere)
    with pytest.raises(SpecError) as error:
        write_repository(folder, answers("github"), update=True)
    assert {problem.rule for problem in error.value.problems} == {"SEA101"}
    assert all("/.github/" in problem.place.file for problem in error.value.problems)
    assert [path.name for path in tmp_path.rglob("*")] == ["team", "elsewhere", ".github"]


def test_an_update_goes_through_a_link_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / ".github").symlink_to("shared")
    write_repository(tmp_path, answers("github"), update=True)
    assert any((tmp_path / "shared").rglob("*.yml"))


@pytest.mark.parametrize("ci", get_args(Ci))
def test_whatever_an_assistant_is_told_is_there(repositories: dict[Ci, Path], ci: Ci) -> None:
    folder = repositories[ci]
    text = (folder / "AGENTS.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 50
    makefile = (folder / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)
    named = [*commands(text), *(span.split() for span in re.findall(r"`((?:make|seatrial) [^`]+)`", text))]
    assert len(named) > 15
    for program, *words in named:
        if program == "make":
            assert words[0] in targets
        else:
            command, rest = command_of(words)
            assert command is not None, words
            known = {name for parameter in command.params for name in parameter.opts}
            assert {word for word in rest if word.startswith("-")} <= known, words
    files_named = re.findall(r"`([\w./-]+(?:\.(?:json|txt|py)|/|file|OWNERS))`", text)
    assert len(files_named) > 6
    assert [name for name in files_named if not (folder / name).exists() and not list(folder.rglob(name))] == []


def test_the_cdk_of_a_repository_is_found_by_every_command(
    repositories: dict[Ci, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "team"
    shutil.copytree(repositories["none"], folder)
    monkeypatch.setattr("sys.executable", f"{folder}/.venv/bin/python")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    spec = folder / EXAMPLE
    with pytest.raises(SpecError, match=r"SEA603.*\n.*npm ci"):
        check_tools(spec)
    cdk = folder / "node_modules" / ".bin" / "cdk"
    cdk.parent.mkdir(parents=True)
    cdk.touch(mode=0o755)
    assert check_tools(spec) == folder
    deployment = load_deployment(spec, folder / "environments", "dev")
    assert deploy_command_of(spec, folder / "environments", deployment)[1][0] == f"{cdk}"
