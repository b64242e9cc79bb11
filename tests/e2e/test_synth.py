"""`cdk synth` of the committed endpoints: no account, same input same bytes, and a mistake leaves no template."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from benchmarks.living_endpoint.synthesis import synthesize
from tests.tools import BIN, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.e2e.conftest import RunCdk, RunTool, Workspace
    from tests.tools import Ended

pytestmark = pytest.mark.e2e

ENDPOINTS = {"dev": ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b"), "prod": ("llama-2-7b-chat",)}
LAST_LINE = "python app.py: Subprocess exited with error 2\n"


@pytest.fixture(scope="module")
def assemblies(synth: RunCdk, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Synthesize each environment's endpoints by the CLI and in this process, into folders of other names."""

    def context(environment: str) -> Mapping[str, str]:
        names = ENDPOINTS[environment]
        return {"environment": environment} | ({"endpoint": names[0]} if len(names) == 1 else {})

    def synthesized(environment: str) -> Path:
        assembly = tmp_path_factory.mktemp(environment)
        words = (word for name, value in context(environment).items() for word in ("-c", f"{name}={value}"))
        ended = synth(*words, "--output", assembly)
        assert ended.exit_code == 0, ended.output
        return assembly

    with ThreadPoolExecutor(max_workers=2) as side_by_side:
        by_the_cli = dict(zip(ENDPOINTS, side_by_side.map(synthesized, ENDPOINTS), strict=True))
    return {
        name: (assembly, synthesize(tmp_path_factory.mktemp(f"{name}-again"), context(name)))
        for name, assembly in by_the_cli.items()
    }


@pytest.mark.parametrize("environment", ENDPOINTS)
def test_each_endpoint_has_its_template(assemblies: dict[str, tuple[Path, Path]], environment: str) -> None:
    found = {path.name for path in assemblies[environment][0].glob("*.template.json")}
    assert found == {f"seatrial-{environment}-{name}.template.json" for name in (*ENDPOINTS[environment], "trials")}


@pytest.mark.parametrize("environment", ENDPOINTS)
def test_the_same_input_gives_the_same_bytes(assemblies: dict[str, tuple[Path, Path]], environment: str) -> None:
    first, second = map(files, assemblies[environment])
    assert sorted(first) == sorted(second)
    assert [name for name, content in first.items() if second[name] != content] == []


def files(folder: Path) -> dict[str, bytes]:
    """Return every file but what only the CLI's synthesis writes: the report of checks, and timings of a slow one."""
    only_of_the_cli = {"performance-counters.json", "validation-report.json"}
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in only_of_the_cli)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def mistakes(new_workspace: Callable[[], Workspace]) -> Workspace:
    """Write one spec that was changed after it was locked and one whose lock is lost."""
    workspace = new_workspace()
    for name in ("chat", "sum"):
        workspace.write(name)
    spec = workspace.endpoints / "chat.yaml"
    spec.write_text(spec.read_text().replace("max_num_seqs: 8", "max_num_seqs: 4"))
    (workspace.endpoints / "sum.lock.json").unlink()
    return workspace


@pytest.fixture(scope="module")
def refused(synth: RunCdk, mistakes: Workspace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Synthesize what must be refused, side by side, and check that it leaves no template."""
    asked = {
        "locks": mistakes.synth_arguments(),
        "unknown": (*mistakes.synth_arguments("staging"), "-c", "endpoint=chat"),
        "unnamed": ("-c", f"endpoints={mistakes.endpoints}", "-c", f"environments={mistakes.environments}"),
    }

    def outcome(name: str) -> Ended:
        assembly = tmp_path_factory.mktemp(name)
        ended = synth(*asked[name], "--output", assembly)
        assert list(assembly.rglob("*.template.json")) == []
        return ended

    with ThreadPoolExecutor(max_workers=2) as side_by_side:
        return dict(zip(asked, side_by_side.map(outcome, asked), strict=True))


def test_every_stale_and_every_missing_lock_is_told(refused: dict[str, Ended], mistakes: Workspace) -> None:
    assert refused["locks"].exit_code == 1
    stale, first_hint, missing, second_hint, *end = refused["locks"].output.splitlines(keepends=True)
    folder = mistakes.endpoints
    assert stale.startswith(f"{folder}/chat.lock.json: local: SEA402: the spec changed after planning: ")
    assert first_hint == f"  hint: run `seatrial plan {folder}/chat.yaml --environment local --write`\n"
    assert missing == f"{folder}/sum.lock.json: local: SEA401: there is no lock\n"
    assert second_hint == f"  hint: run `seatrial plan {folder}/sum.yaml --environment local --write`\n"
    assert "".join(end) == LAST_LINE


def test_an_unknown_environment_is_told_with_the_known_ones(refused: dict[str, Ended], mistakes: Workspace) -> None:
    folder = mistakes.environments
    assert refused["unknown"].exit_code == 1
    assert refused["unknown"].output == (
        f"{folder}/staging.yaml: SEA109: there is no environment staging\n"
        f"  hint: known environments: local (in {folder})\n{LAST_LINE}"
    )


def test_without_an_environment_what_must_be_named_is_told(refused: dict[str, Ended], mistakes: Workspace) -> None:
    assert refused["unnamed"].exit_code == 1
    assert refused["unnamed"].output == (
        f"{mistakes.endpoints}: SEA404: no endpoint has a lock in any environment\n"
        f"  hint: local (embedded AWS) is skipped; select it with -c environment=local\n{LAST_LINE}"
    )


STACKS = {f"seatrial-{environment}-{name}" for environment in ENDPOINTS for name in (*ENDPOINTS["dev"], "trials")}
LEFT_OUT = "note: local (embedded AWS) is skipped; select it with -c environment=local\n"


@pytest.fixture(scope="module")
def listed(run_tool: RunTool, variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run `cdk ls` without any context; return what it wrote and its assembly, which the CDK checked."""
    assembly, env = tmp_path_factory.mktemp("everything"), {**variables, "CDK_VALIDATION": "true"}
    ended = run_tool(BIN / "cdk", "ls", "--no-notices", "--output", assembly, folder=ROOT, env=env)
    assert ended.exit_code == 0, ended.output
    return ended.output, assembly


def test_ls_without_context_lists_every_environment_but_the_embedded_aws(listed: tuple[str, Path]) -> None:
    output, _ = listed
    assert output.startswith(LEFT_OUT)
    assert set(output.removeprefix(LEFT_OUT).splitlines()) == STACKS


def test_a_template_is_that_of_a_narrowed_synthesis(
    listed: tuple[str, Path], assemblies: dict[str, tuple[Path, Path]]
) -> None:
    narrowed = {file.name: file.read_bytes() for two in assemblies.values() for file in two[0].glob("*.template.json")}
    assert len(narrowed) == 6
    assert {name: (listed[1] / name).read_bytes() for name in narrowed} == narrowed


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("seatrial-dev-llama-2-7b-chat", {"seatrial-dev-llama-2-7b-chat", "seatrial-dev-trials"}),
        ("seatrial-prod-*", {name for name in STACKS if "-prod-" in name}),
    ],
)
def test_stacks_are_chosen_by_name_or_pattern(
    listed: tuple[str, Path], run_tool: RunTool, variables: dict[str, str], pattern: str, expected: set[str]
) -> None:
    ended = run_tool(BIN / "cdk", "ls", pattern, "--no-notices", "--app", listed[1], folder=ROOT, env=variables)
    assert ended.exit_code == 0, ended.output
    assert set(ended.output.splitlines()) == expected
