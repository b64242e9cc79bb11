"""What is written into which folder, and that nothing is half-written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest
from typer.testing import CliRunner

import seatrial
from seatrial.cli.app import app
from seatrial.locks.lock_file import locked_environments
from seatrial.repository.answers import Ci, TargetEnvironment, new_targets, parse_accounts, targets_of
from seatrial.repository.write import write_repository
from seatrial.specs.load import load_spec
from seatrial.specs.pipeline import promotion_order
from seatrial_base.catalog.presets import PRESETS
from seatrial_base.errors import SpecError
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
    assert f"seatrial[cdk,node]=={seatrial.__version__}\n" in (folder / "requirements.txt").read_text(encoding="utf-8")
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
    wanted = f"help install validate plan publish plan-check lint synth test diff {deploying} drift schema clean"
    assert names == wanted.split()


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
        for name in ("Makefile", "requirements.txt", "constraints.txt", "package.json", "package-lock.json"):
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
