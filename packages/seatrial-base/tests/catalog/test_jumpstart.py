from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.jumpstart import JUMPSTART_MODELS, find_jumpstart_model, nearest_jumpstart_ids

if TYPE_CHECKING:
    from pathlib import Path

SPEC = {
    "model_id": "team-llm-chat",
    "version": "1.9.0",
    "hosting_artifact_key": "team/inference/v1/",
    "hosting_prepacked_artifact_key": "team/inference-prepack/v1/",
    "gated_bucket": True,
    "hosting_eula_key": "eula/team.txt",
}


def test_a_gated_model_lies_in_the_private_bucket_of_the_region() -> None:
    model = find_jumpstart_model("meta-textgeneration-llama-2-7b-f")
    assert model is not None
    assert model.s3_uri("eu-west-1") == f"s3://jumpstart-private-cache-prod-eu-west-1/{model.key}"
    assert model.key.startswith("meta-textgeneration/meta-textgeneration-llama-2-7b-f/artifacts/inference-prepack/")
    assert model.eula_url("us-east-1") == (
        "https://jumpstart-cache-prod-us-east-1.s3.us-east-1.amazonaws.com/fmhMetadata/eula/llamaEula.txt"
    )


def test_an_open_model_lies_in_the_public_bucket() -> None:
    model = find_jumpstart_model("huggingface-llm-mistral-7b-instruct")
    assert model is not None
    assert model.s3_uri("us-east-1") == f"s3://jumpstart-cache-prod-us-east-1/{model.key}"
    assert model.eula_url("us-east-1") is None


def test_every_artifact_can_be_mounted_and_a_gated_one_has_a_licence() -> None:
    for model in JUMPSTART_MODELS.rows:
        assert model.key.endswith(("/", ".tar.gz")), model.id
        assert model.eula_key or not model.gated, model.id


def test_ids_are_unique_and_sorted() -> None:
    ids = [model.id for model in JUMPSTART_MODELS.rows]
    assert ids == sorted(set(ids))


def test_an_unknown_id_has_near_ones() -> None:
    assert find_jumpstart_model("meta-textgeneration-llama-2-7b-chat") is None
    assert "meta-textgeneration-llama-2-7b" in nearest_jumpstart_ids("meta-textgeneration-llama-2-7b-chat")


def test_metadata_of_a_file_prefers_the_prepacked_artifact(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(SPEC))
    model = jumpstart.read_metadata(tmp_path / "a.json", "team-llm-chat")
    assert model == jumpstart.JumpStartModel(
        id="team-llm-chat", version="1.9.0", key="team/inference-prepack/v1/", gated=True, eula_key="eula/team.txt"
    )


def test_of_a_folder_the_newest_version_counts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.json").write_text(json.dumps([SPEC, {"model_id": "another"}]))
    newer = SPEC | {"version": "1.10.0", "hosting_prepacked_artifact_key": None}
    (tmp_path / "deep" / "b.json").write_text(json.dumps(newer))
    model = jumpstart.read_metadata(tmp_path, "team-llm-chat")
    assert (model.version, model.key) == ("1.10.0", "team/inference/v1/")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a.json can't be read: "),
        ("[" * 100_000, "a.json can't be read: "),
        ("[1, null]", "no file describes team-llm-chat"),
        (
            '{"model_id": "team-llm-chat"}',
            "team-llm-chat has no hosting_prepacked_artifact_key or hosting_artifact_key",
        ),
        (
            '{"model_id": "team-llm-chat", "hosting_artifact_key": "a/file"}',
            "team-llm-chat has no hosting_prepacked_artifact_key or hosting_artifact_key",
        ),
    ],
)
def test_metadata_that_says_nothing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(jumpstart.MetadataError) as error:
        jumpstart.read_metadata(tmp_path / "a.json", "team-llm-chat")
    assert str(error.value).startswith(message)
