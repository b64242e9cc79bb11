"""An answer before any file: a model with its load in place of a spec, and no environment's file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
import yaml

from seatrial.cli.support.model_options import (
    ModelOptions,
    is_model,
    load_specs_or_model,
    names_list,
    save_spec,
)
from seatrial.planner.decisions.plan_warnings import size_warnings
from seatrial.specs.architecture import read_architecture
from seatrial.specs.presets import endpoint_name
from seatrial_base.errors import PlanError, SpecError
from tests.cli.conftest import files

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial

SMALL = "Qwen/Qwen2.5-0.5B-Instruct"
ASKED = ModelOptions(input_tokens=2000, output_tokens=300, concurrency=16, ttft_p95_ms=2500, tpot_p95_ms=60)
OPTIONS = ("--input", "200", "--output", "100", "--concurrency", "4", "--ttft-p95", "2000", "--budget", "10")


@pytest.fixture
def empty(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("stranger") / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    return folder


NOTHING = ModelOptions()


def refused(*given: str, asked: ModelOptions = NOTHING, environment: str | None = None) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as error:
        load_specs_or_model([Path(each) for each in given], environment, None, asked)
    return [(problem.rule, problem.field) for problem in error.value.problems]


def test_a_model_becomes_the_spec_that_its_options_say(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (loaded,) = load_specs_or_model([Path("Qwen/Qwen3-32B")], None, None, ASKED)
    endpoint = loaded.endpoint
    assert (endpoint.name, endpoint.model.hub_id) == ("qwen3-32b", "Qwen/Qwen3-32B")
    assert (endpoint.workload.input_tokens, endpoint.workload.output_tokens) == (2000, 300)
    assert (endpoint.slo.ttft_ms.p95, endpoint.slo.tpot_ms.p95, endpoint.workload.concurrency) == (2500, 60, 16)
    assert (loaded.environment.name, loaded.environment.region) == ("dev", "us-east-1")
    assert capsys.readouterr().err == "no environments/dev.yaml: region us-east-1, account of your credentials\n"
    assert files(empty) == {}


def test_as_many_copies_are_assumed_as_the_load_may_need_and_said(empty: Path, seatrial: Seatrial) -> None:
    load, folder = ("--input", "100", "--output", "300", "--rate"), empty / "environments"
    folder.mkdir()
    most: list[int] = []
    for rate, rails in (("2.5", "{}"), ("90", "{}"), ("90", "{max_copies: 3}"), ("90", "{usd_per_hour: 900}")):
        (folder / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\nguard_rails: {rails}\n")
        done = seatrial("plan", SMALL, *load, rate, "--save", f"s{len(most)}.yaml", folder=empty)
        saved = (empty / f"s{len(most)}.yaml").read_text()
        most.append(int(saved.partition("max_copies: ")[2].split()[0].rstrip("}")))
        assert f"writes the spec (max_copies {most[-1]} assumed)" in done.stdout
        assert f"requests_per_second: {rate}" in saved
    assert most == [8, 54, 3, 8]


def test_the_region_is_the_option_or_that_of_the_credentials(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert load_specs_or_model([Path(SMALL)], None, None, ASKED)[0].environment.region == "eu-west-1"
    asked = ModelOptions(input_tokens=1, output_tokens=1, concurrency=1, region="eu-central-1")
    assert load_specs_or_model([Path(SMALL)], "prod", None, asked)[0].environment.region == "eu-central-1"
    assert not (empty / "environments").exists()


def test_a_saved_spec_is_the_one_that_is_planned(empty: Path) -> None:
    save = Path("endpoints/chat.yaml")
    asked = ModelOptions(
        input_tokens=2000, output_tokens=300, requests_per_second=2.5, usd_per_hour=10, headroom=0.9, save=save
    )
    (loaded,) = load_specs_or_model([Path(SMALL)], None, None, asked)
    assert files(empty) == {}
    save_spec(asked)
    text = (empty / "endpoints" / "chat.yaml").read_text()
    assert yaml.safe_load(text) == {
        "name": "chat",
        "model": {"hub_id": SMALL},
        "workload": {"input_tokens": 2000, "output_tokens": 300, "requests_per_second": 2.5},
        "objective": {"goal": "cost", "headroom": 0.9},
        "budget": {"usd_per_hour": 10},
        "scaling": {"min_copies": 1, "max_copies": 8},
    }
    assert text.count(" # ") == 8
    assert load_specs_or_model([Path("endpoints/chat.yaml")], None, None, NOTHING)[0].digest == loaded.digest


def test_no_file_is_overwritten_and_none_is_written_of_a_spec_with_mistakes(empty: Path) -> None:
    save = Path("chat.yaml")
    wrong = ModelOptions(input_tokens=0, output_tokens=300, concurrency=1, requests_per_second=1, save=save)
    assert refused(SMALL, asked=wrong) == [
        ("SEA107", "workload.input_tokens"),
        ("SEA108", "workload.requests_per_second"),
    ]
    assert files(empty) == {}
    save.write_text("mine")
    right = ModelOptions(input_tokens=1, output_tokens=300, concurrency=1, save=save)
    assert refused(SMALL, asked=right) == [("SEA514", "--save")]
    assert save.read_text() == "mine"


@pytest.mark.usefixtures("empty")
def test_a_model_without_its_load_is_told_what_is_missing() -> None:
    with pytest.raises(typer.BadParameter) as error:
        load_specs_or_model([Path(SMALL)], None, None, ModelOptions(input_tokens=1))
    assert error.value.param_hint == "--output, --concurrency (or --rate)"


@pytest.mark.usefixtures("empty")
def test_the_name_of_a_model_without_its_owner_is_answered_with_its_id() -> None:
    with pytest.raises(typer.BadParameter) as error:
        load_specs_or_model([Path("qwen3-32b")], None, None, ASKED)
    assert error.value.message == "qwen3-32b is no file; the model of that name is Qwen/Qwen3-32B"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("weights", "weights is a folder without a config.json; copy the model's there"),
        ("./nothing", "nothing is neither a file, a folder nor a hub id, as in Qwen/Qwen3-32B"),
    ],
)
@pytest.mark.usefixtures("empty")
def test_a_path_that_was_meant_for_a_model_is_told_what_it_lacks(path: str, told: str) -> None:
    Path("weights").mkdir()
    with pytest.raises(typer.BadParameter) as error:
        load_specs_or_model([Path(path)], None, None, ASKED)
    assert (error.value.message, error.value.param_hint) == (told, "SPEC")


@pytest.mark.parametrize("page", ["https://huggingface.co/Qwen/Qwen3-32B", "hf.co/Qwen/Qwen3-32B"])
@pytest.mark.usefixtures("empty")
def test_the_address_of_a_models_page_is_its_id(page: str) -> None:
    (loaded,) = load_specs_or_model([Path(page)], None, None, ASKED)
    assert loaded.endpoint.model.hub_id == "Qwen/Qwen3-32B"


def test_options_of_a_model_are_refused_beside_a_spec(empty: Path) -> None:
    (empty / "chat.yaml").write_text("name: chat\n")
    with pytest.raises(typer.BadParameter) as error:
        load_specs_or_model([Path("chat.yaml")], None, None, ModelOptions(input_tokens=1, usd_per_hour=3))
    assert error.value.param_hint == "--input, --budget"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(SMALL, True), ("endpoints/chat.yaml", False), ("endpoints", False), ("../endpoints/x", False), ("/a/b", False)],
)
@pytest.mark.usefixtures("empty")
def test_what_is_taken_for_a_model(text: str, expected: bool) -> None:  # noqa: FBT001 (a parameter of the case)
    assert is_model(Path(text)) is expected


def test_a_folder_that_is_there_is_no_model(empty: Path) -> None:
    (empty / "endpoints" / "chat").mkdir(parents=True)
    assert not is_model(Path("endpoints/chat"))


DENSE = {
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}


@pytest.fixture
def weights(empty: Path) -> Path:
    folder = empty / "Mini-1B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(DENSE))
    return folder


class TestFolderOfWeights:
    def test_it_is_planned_as_a_model(self, weights: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (loaded,) = load_specs_or_model([weights], None, None, ASKED)
        assert (loaded.endpoint.name, loaded.endpoint.model.config_file) == ("mini-1b", "config.json")
        assert (loaded.has_spec, names_list([weights])) == (False, False)
        assert read_architecture(loaded).params_total == 1_235_814_400
        assert capsys.readouterr().err == "no environments/dev.yaml: region us-east-1, account of your credentials\n"

    def test_its_spec_names_the_file(self, weights: Path) -> None:
        asked = replace(ASKED, save=Path("endpoints/chat.yaml"), texts=[])
        load_specs_or_model([weights], None, None, asked)
        save_spec(asked)
        model = yaml.safe_load(Path("endpoints/chat.yaml").read_text())["model"]
        assert model == {"s3_uri": "s3://your-bucket/chat/", "config_file": "../Mini-1B/config.json"}
        (loaded,) = load_specs_or_model([Path("endpoints/chat.yaml")], None, None, NOTHING)
        assert read_architecture(loaded).layers == 16

    def test_a_spec_names_no_file_outside_of_its_repository(self, weights: Path, tmp_path: Path) -> None:
        (tmp_path / "repository" / ".git").mkdir(parents=True)
        save = tmp_path / "repository" / "chat.yaml"
        assert refused(str(weights), asked=replace(ASKED, save=save, texts=[])) == [("SEA138", "--save")]

    def test_a_folder_of_specs_is_none(self, weights: Path) -> None:
        (weights / "chat.yaml").write_text("name: chat\n")
        assert not is_model(weights)

    def test_embeddings_are_refused(self, weights: Path) -> None:
        (weights / "modules.json").write_text("[]")
        (loaded,) = load_specs_or_model([weights], None, None, ASKED)
        with pytest.raises(PlanError, match="SEA255: the folder is one of sentence-transformers"):
            read_architecture(loaded)

    @pytest.mark.parametrize(("share", "warned"), [(1.0, False), (1.04, False), (1.3, True)])
    def test_another_size_in_the_index_is_told(self, weights: Path, share: float, warned: bool) -> None:  # noqa: FBT001 (a case)
        size = {"metadata": {"total_size": round(2 * 1_235_814_400 * share)}}
        (weights / "model.safetensors.index.json").write_text(json.dumps(size))
        (loaded,) = load_specs_or_model([weights], None, None, ASKED)
        told = size_warnings(loaded, read_architecture(loaded))
        assert told == (
            ("The index of the weights says 3.0 GiB; by config.json they have 2.3 GiB, which is planned.",)
            if warned
            else ()
        )


@pytest.mark.parametrize(
    ("hub_id", "name"),
    [("Qwen/Qwen3-32B", "qwen3-32b"), ("openai/gpt-oss-120b", "gpt-oss-120b"), ("a/B_.c", "b-c"), ("a/__", "endpoint")],
)
def test_names_of_endpoints(hub_id: str, name: str) -> None:
    assert endpoint_name(hub_id) == name


class TestEnvironment:
    def test_the_only_one_is_taken(self, empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (empty / "environments").mkdir()
        (empty / "environments" / "qa.yaml").write_text("name: qa\nregion: eu-west-1\n")
        (loaded,) = load_specs_or_model([Path(SMALL)], None, None, ASKED)
        assert (loaded.environment.region, capsys.readouterr().err) == ("eu-west-1", "")
        with pytest.raises(typer.BadParameter, match="qa is in eu-west-1"):
            load_specs_or_model([Path(SMALL)], None, None, replace(ASKED, region="us-east-1"))

    def test_a_model_has_no_more_copies_than_the_guard_rail(self, empty: Path) -> None:
        (empty / "environments").mkdir()
        text = "name: qa\nregion: eu-west-1\nguard_rails: {max_copies: 2}\n"
        (empty / "environments" / "qa.yaml").write_text(text)
        assert load_specs_or_model([Path(SMALL)], None, None, ASKED)[0].endpoint.scaling.max_copies == 2

    def test_of_several_a_model_takes_the_first_of_an_account_and_tells_it(
        self, empty: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (empty / "environments").mkdir()
        for name, account in (("alpha", "000000000000"), ("dev", "111111111111"), ("beta", "222222222222")):
            text = f'name: {name}\naccount: "{account}"\nregion: eu-west-1\n'
            (empty / "environments" / f"{name}.yaml").write_text(text)
        assert load_specs_or_model([Path(SMALL)], None, None, ASKED)[0].environment.name == "dev"
        assert capsys.readouterr().err == "environment dev (environments/dev.yaml); -e names another\n"
        (empty / "environments" / "dev.yaml").unlink()
        assert load_specs_or_model([Path(SMALL)], None, None, ASKED)[0].environment.name == "beta"

    def test_of_several_one_must_be_named_for_a_spec_and_an_unknown_one_is_no_default(self, empty: Path) -> None:
        (empty / "chat.yaml").write_text(
            f"name: chat\nmodel: {{hub_id: {SMALL}}}\nworkload: {{input_tokens: 9, output_tokens: 9, concurrency: 1}}\n"
        )
        (empty / "environments").mkdir()
        for name in ("qa", "prod"):
            (empty / "environments" / f"{name}.yaml").write_text(f"name: {name}\nregion: eu-west-1\n")
        assert refused("chat.yaml") == [("SEA109", "")]
        assert refused(SMALL, asked=ASKED, environment="dev") == [("SEA109", "")]

    def test_overrides_of_environments_that_have_no_file_are_no_mistake_yet(self, empty: Path) -> None:
        spec = empty / "chat.yaml"
        spec.write_text(
            f"name: chat\nmodel: {{hub_id: {SMALL}}}\nworkload: {{input_tokens: 9, output_tokens: 9, concurrency: 1}}\n"
            "environments: {prod: {workload: {concurrency: 7}}}\n"
        )
        (loaded,) = load_specs_or_model([spec], "prod", None, NOTHING)
        assert loaded.endpoint.workload.concurrency == 7

    def test_validate_needs_no_file(self, empty: Path, seatrial: Seatrial) -> None:
        (empty / "chat.yaml").write_text(
            f"name: chat\nmodel: {{hub_id: {SMALL}}}\nworkload: {{input_tokens: 9, output_tokens: 9, concurrency: 1}}\n"
        )
        done = seatrial("validate", "chat.yaml", folder=empty)
        assert (done.returncode, done.stdout) == (0, "chat.yaml: valid\n")
        assert done.stderr == "no environments/dev.yaml: region us-east-1, account of your credentials\n"
        named = seatrial("validate", "chat.yaml", "--environments", "nowhere", folder=empty)
        assert (named.returncode, "SEA109" in named.stderr) == (2, True)

    def test_warnings_are_in_the_document_and_fail_nothing(self, empty: Path, seatrial: Seatrial) -> None:
        (empty / "chat.yaml").write_text(
            "name: chat\nmodel: {hub_id: meta-llama/Llama-3.1-8B-Instruct}\n"
            "workload: {input_tokens: 9, output_tokens: 9, concurrency: 1}\n"
        )
        (empty / "talk.lock.json").write_text("{}")
        done = seatrial("validate", "chat.yaml", "--format", "json", folder=empty)
        notes = json.loads(done.stdout)["findings"]
        assert done.returncode == 0
        assert [(note["severity"], note["file"]) for note in notes] == [
            ("note", "chat.yaml"),
            ("note", "talk.lock.json"),
        ]
        stderr = seatrial("validate", "chat.yaml", folder=empty).stderr
        assert all(f"warning: {note['rule']}: {note['message']}" in stderr for note in notes)
        assert notes[1]["rule"] == "SEA417"

    def test_a_bound_that_nobody_wrote_is_called_assumed(self, empty: Path, seatrial: Seatrial) -> None:
        rails = "name: dev\nregion: us-east-1\nguard_rails: {usd_per_hour: 60, max_copies: 2}\n"
        (empty / "environments").mkdir(exist_ok=True)
        (empty / "environments" / "dev.yaml").write_text(rails)
        load = ("--input", "2000", "--output", "300", "--concurrency", "16")
        error = seatrial("plan", "deepseek-ai/DeepSeek-R1", *load, folder=empty).stderr
        assert "SEA206" in error
        assert "hint: max_copies 2 is assumed: --save FILE writes a spec, where you set it" in error

    def test_a_lock_needs_the_file(self, empty: Path, seatrial: Seatrial) -> None:
        (empty / "chat.yaml").write_text(
            f"name: chat\nmodel: {{hub_id: {SMALL}}}\nworkload: {{input_tokens: 9, output_tokens: 9, concurrency: 1}}\n"
        )
        done = seatrial("plan", "chat.yaml", "--write", folder=empty)
        assert done.returncode == 2
        assert "SEA109: there is no environment dev" in done.stderr
        assert "seatrial init" in done.stderr


def test_the_commands_answer_in_an_empty_folder(empty: Path, seatrial: Seatrial) -> None:
    plan = seatrial("plan", SMALL, *OPTIONS, "--format", "json", folder=empty)
    assert (plan.returncode, json.loads(plan.stdout)["endpoint"]) == (0, "qwen2-5-0-5b-instruct")
    shown = seatrial("plan", SMALL, *OPTIONS, folder=empty)
    assert "--save endpoints/NAME.yaml writes the spec" in shown.stdout
    rendered = seatrial("render", SMALL, *OPTIONS, folder=empty)
    assert (rendered.returncode, f"option.model_id={SMALL}" in rendered.stdout) == (0, True)
    compared = seatrial("compare-instances", SMALL, *OPTIONS, "--format", "csv", folder=empty)
    assert (compared.returncode, "ml.g6.xlarge" in compared.stdout) == (0, True)
    asked = seatrial("preflight", SMALL, *OPTIONS, folder=empty, env={"AWS_EC2_METADATA_DISABLED": "true"})
    assert (asked.returncode, "SEA503" in asked.stderr) == (1, True)
    assert files(empty) == {}


def test_a_model_has_no_lock(empty: Path, seatrial: Seatrial) -> None:
    done = seatrial("plan", SMALL, *OPTIONS, "--write", folder=empty)
    assert (done.returncode, "write its spec with --save" in done.stderr) == (2, True)


def test_a_plan_that_is_refused_leaves_no_spec(empty: Path, seatrial: Seatrial) -> None:
    done = seatrial("plan", SMALL, *OPTIONS, "--budget", "0.01", "--save", "chat.yaml", folder=empty)
    assert (done.returncode, "SEA206" in done.stderr) == (2, True)
    assert files(empty) == {}
