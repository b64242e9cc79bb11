from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.load import load_deployments
from seatrial.errors import SpecError
from seatrial.plan.lock import write_lock
from seatrial.plan.planner import make_plan
from seatrial.spec.load import load_spec

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
name: {name}
model: {{hub_id: meta-llama/Llama-2-7b-chat-hf}}
workload: {{input_tokens: 256, output_tokens: 128, concurrency: 8}}
serving: {{instance_types: [ml.g5.2xlarge]}}
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.chdir(tmp_path)
    endpoints, environments = tmp_path / "endpoints", tmp_path / "environments"
    for folder in (endpoints, environments):
        folder.mkdir()
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    return endpoints.relative_to(tmp_path), environments.relative_to(tmp_path)


def write(folders: tuple[Path, Path], file: str, name: str) -> None:
    spec = folders[0] / file
    spec.write_text(SPEC.format(name=name))
    write_lock(make_plan(load_spec(spec, "dev", environments=folders[1])), spec)


def test_every_endpoint_of_the_folder_is_loaded(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", "talk")
    assert [deployment.stack_name for deployment in load_deployments(*folders, "dev")] == [
        "seatrial-dev-chat",
        "seatrial-dev-talk",
    ]


@pytest.mark.parametrize("second", ["chat", "Chat"])
def test_one_name_in_two_specs_names_both_files(second: str, folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", second)
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "dev")
    assert str(caught.value) == (
        f"endpoints/b.yaml: name: SEA108: endpoints/a.yaml names its endpoint chat, and this one is {second}\n"
        "  hint: an endpoint's name is its identity, in upper or lower case; rename one"
    )


def test_what_is_wrong_with_the_environment_is_told_once(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", "talk")
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "stage")
    assert [str(problem) for problem in caught.value.problems] == [
        "environments/stage.yaml: SEA109: there is no environment stage\n  hint: known in environments: dev"
    ]
