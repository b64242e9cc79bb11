from __future__ import annotations

import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.engines.render import render_plan
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial_base.catalog.engine_options import ENGINE_OPTIONS, TOPICS
from seatrial_base.catalog.engine_versions import DIALECTS
from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import ServingConfig
from seatrial_lint.engines.neutral import render_config

if TYPE_CHECKING:
    from seatrial_base.catalog.engine_versions import DialectName

ROOT = Path(__file__).parents[2]
NAME = "lmi/serving.properties.j2"


def rendered(own: Path | None) -> dict[str, str]:
    loaded = load_spec(
        ROOT / "examples/one_endpoint/chat.yaml", "dev", environments=ROOT / "examples/one_endpoint/environments"
    )
    return dict(render_plan(loaded, read_locked_plan(loaded), templates=own).files)


def written(folder: Path, text: str, name: str = NAME) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


ALL_LINES = (
    '{% from "_lines.j2" import variables %}{% for topic in options.values() %}{{ variables(topic) }}{% endfor %}'
)
TOPIC = re.compile(r"\{\{ (?:properties|variables)\(options\.(\w+)\) -\}\}")


def test_each_template_writes_every_topic_of_its_engine_in_the_order_of_the_table() -> None:
    for template in (ROOT / "serving_templates").glob("*/*.j2"):
        written = TOPIC.findall(template.read_text("utf-8"))
        of_engine = {
            option.topic
            for option in ENGINE_OPTIONS.rows
            if any(DIALECTS[name].engine == template.parent.name for row in option.spellings for name in row.dialects)
        }
        assert of_engine | {"extra"} <= set(written)
        assert written == [topic for topic in (*TOPICS, "extra") if topic in written]


def test_the_options_of_a_topic_stand_together_in_the_table() -> None:
    topics = [option.topic for option in ENGINE_OPTIONS.rows]
    assert [topic for topic, _ in groupby(topics)] == list(TOPICS)


def test_the_folder_of_a_repository_overrides_ours(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/one_endpoint", tmp_path / "project")
    written(tmp_path / "project/serving_templates", "# {{ header }}\noption.model_id=own\n")
    loaded = load_spec(tmp_path / "project/chat.yaml", "dev", environments=tmp_path / "project/environments")
    files = render_plan(loaded, read_locked_plan(loaded)).files
    assert files["serving.properties"].splitlines()[1:] == ["option.model_id=own"]


@pytest.mark.parametrize(("dialect", "version"), [("lmi-async", "27"), ("tgi", "3.3.6"), ("vllm", "0.26.0")])
def test_an_environment_of_ones_own_is_read_line_by_line(tmp_path: Path, dialect: DialectName, version: str) -> None:
    engine = DIALECTS[dialect].engine
    own = written(tmp_path, f"# first\nTEAM_MODE=a=b\n\n{ALL_LINES}", f"{engine}/container.env.j2")
    config = ServingConfig(model_id="org/model", max_num_seqs=8)
    ours = render_config(config, dialect, version, "env").env
    assert render_config(config, dialect, version, "env", templates=own).env == {"TEAM_MODE": "a=b", **ours}


def test_a_line_that_is_no_variable_is_told(tmp_path: Path) -> None:
    own = written(tmp_path, "export A=1\nB=2\nC D\n", "vllm/container.env.j2")
    with pytest.raises(RenderError) as refused:
        render_config(ServingConfig(model_id="org/model"), "vllm", "0.26.0", "env", templates=own)
    assert [problem.rule for problem in refused.value.problems] == ["SEA301", "SEA301"]


def test_a_file_of_ones_own_is_read_in_place_of_ours(tmp_path: Path) -> None:
    own = written(
        tmp_path,
        '{% include "_team.txt" %}' + ALL_LINES,
    )
    written(tmp_path, "# of our team\n", "_team.txt")
    before, after = rendered(None)["serving.properties"], rendered(own)["serving.properties"]
    assert after.startswith("# of our team\n")
    assert [line.partition("=")[0] for line in before.splitlines() if not line.startswith("#")] == [
        line.partition("=")[0] for line in after.splitlines() if not line.startswith("#")
    ]


def test_an_empty_folder_overrides_nothing(tmp_path: Path) -> None:
    assert rendered(tmp_path) == rendered(None)


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("one\n{{ unknown }}\n", 2, "SEA301"),
        ("{% for %}", 1, "SEA301"),
        ("\n{{ header | items }}", 2, "SEA301"),
        ("\n\n{{ header + 1 }}", 3, "SEA311"),
    ],
)
def test_one_that_breaks_is_told_with_file_and_line(tmp_path: Path, text: str, line: int, rule: str) -> None:
    own = written(tmp_path, text)
    with pytest.raises(RenderError) as refused:
        rendered(own)
    (problem,) = refused.value.problems
    assert (problem.rule, problem.where) == (rule, f"{(own / NAME).as_posix()}:{line}")


def test_every_file_that_overrides_nothing_is_told(tmp_path: Path) -> None:
    written(written(tmp_path, "", "lmi/serving.properties"), "", "tgi/env.j2")
    written(tmp_path, "", "README.md")
    with pytest.raises(RenderError) as refused:
        rendered(tmp_path)
    assert [(problem.rule, problem.where) for problem in refused.value.problems] == [
        ("SEA301", (tmp_path / name).as_posix()) for name in ("lmi/serving.properties", "tgi/env.j2")
    ]


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="SEA301: there is no such folder"):
        rendered(tmp_path / "none")


@pytest.mark.parametrize(
    ("rail", "line", "allowed"),
    [
        ("models: [Qwen/*]", "option.model_id=evil/model", False),
        ("models: [Qwen/*]", "option.tokenizer=evil/tokens", False),
        ("models: [Qwen/*]", "option.entryPoint=evil.py", False),
        ("models: [Qwen/*]", "option.of_tomorrow=evil/model", False),
        ("models: [Qwen/*]", "option.gpu_memory_utilization=0.8", True),
        ("models: [Qwen/*]", "option.tokenizer=Qwen/tokens", True),
        ("remote_code: refused", "option.trust_remote_code=true", False),
        ("remote_code: refused", "option.trust_remote_code=false", True),
        ("revisions: pinned", "option.tokenizer=Qwen/tokens", False),
        ("revisions: pinned", "option.revision=main", False),
        ("revisions: pinned", f"option.revision={'1' * 40}", True),
    ],
)
def test_a_template_loads_what_the_rails_allow_alone(tmp_path: Path, rail: str, line: str, *, allowed: bool) -> None:
    shutil.copytree(ROOT / "examples/one_endpoint", tmp_path / "project")
    place = tmp_path / "project/environments/dev.yaml"
    place.write_text(f"{place.read_text()}guard_rails: {{{rail}}}\n")
    properties = ALL_LINES.replace("variables", "properties")
    written(tmp_path / "project/serving_templates", f"# {{{{ header }}}}\n{properties}{line}\n")
    loaded = load_spec(tmp_path / "project/chat.yaml", "dev", environments=tmp_path / "project/environments")
    plan = read_locked_plan(loaded)
    if allowed:
        assert line in render_plan(loaded, plan).files["serving.properties"]
        return
    with pytest.raises(RenderError) as refused:
        render_plan(loaded, plan)
    assert {problem.rule for problem in refused.value.problems} == {"SEA111"}


def test_a_template_beside_the_rail_of_licences_alone_loads_nothing_of_an_unknown_licence(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/one_endpoint", tmp_path / "project")
    place = tmp_path / "project/environments/dev.yaml"
    place.write_text(f"{place.read_text()}guard_rails: {{licences: [apache-2.0]}}\n")
    lines = f"# {{{{ header }}}}\n{ALL_LINES.replace('variables', 'properties')}"
    own = written(tmp_path / "project/serving_templates", lines)
    loaded = load_spec(tmp_path / "project/chat.yaml", "dev", environments=tmp_path / "project/environments")
    plan = read_locked_plan(loaded)
    assert "option.model_id" in render_plan(loaded, plan).files["serving.properties"]
    written(own, f"{lines}option.tokenizer=evil/tokens\n")
    with pytest.raises(RenderError) as refused:
        render_plan(loaded, plan)
    assert [(problem.rule, problem.field) for problem in refused.value.problems] == [("SEA111", "option.tokenizer")]
