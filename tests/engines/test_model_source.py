from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.engines.render import MOUNT, model_source
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.errors import RenderError, SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.engines.conftest import Loaded

MISTRAL = "huggingface-llm-mistral-7b-instruct"
JUMPSTART = f"jumpstart_id: {MISTRAL}\n  accept_eula: true\n  architecture: mistralai/Mistral-7B-v0.1"


def test_a_pinned_hub_model_is_loaded_by_its_id(loaded: Loaded) -> None:
    source = model_source(loaded(model="hub_id: org/model\n  revision: 0123abc"))
    assert (source.model_id, source.revision, source.weights_s3_uri, source.notes) == ("org/model", "0123abc", None, ())


@pytest.mark.parametrize(
    ("model", "note"),
    [
        (
            "hub_id: org/model",
            "chat.yaml:3: model.hub_id: SEA365: warning: no revision: org/model may change between container starts\n "
            " hint: set model.revision to the commit on the model's hub page",
        ),
        (
            "hub_id: org/model\n  revision: main",
            "chat.yaml:4: model.revision: SEA365: warning: the revision main is a branch or a tag: org/model may "
            "change between container starts\n"
            "  hint: set model.revision to the commit on the model's hub page",
        ),
    ],
)
def test_an_unpinned_hub_model_is_warned_of(model: str, note: str, loaded: Loaded) -> None:
    (found,) = model_source(loaded(model=model)).notes
    assert str(found).endswith(note)


def test_a_token_is_a_reference_and_only_for_the_hub(loaded: Loaded) -> None:
    source = model_source(loaded(model="hub_id: org/model\n  hub_token_secret: my/token"))
    assert source.secret_env == {"HF_TOKEN": "my/token"}


@pytest.mark.parametrize("uri", ["s3://bucket/model/", "s3://bucket/model.tar.gz"])
def test_weights_in_s3_are_mounted(uri: str, loaded: Loaded) -> None:
    source = model_source(loaded(model=f"s3_uri: {uri}\n  architecture: org/model"))
    assert (source.model_id, source.weights_s3_uri, source.secret_env) == (MOUNT, uri, {})


@pytest.mark.parametrize("uri", ["s3://bucket/model", "s3://bucket/model.tar", "s3://bucket/.tar.gz/x"])
def test_neither_prefix_nor_archive_is_refused(uri: str, loaded: Loaded) -> None:
    with pytest.raises(SpecError, match=r"hint: as in s3://bucket/model/, with the final slash, or s3://bucket/model"):
        loaded(model=f"s3_uri: {uri}")


def test_a_jumpstart_id_is_looked_up_for_the_region_and_told_to_be_pinned(loaded: Loaded) -> None:
    source = model_source(loaded(model=JUMPSTART))
    known = find_jumpstart_model(MISTRAL)
    assert known is not None
    uri = f"s3://jumpstart-cache-prod-us-east-1/{known.key}"
    assert (source.model_id, source.weights_s3_uri) == (MOUNT, uri)
    (note,) = source.notes
    assert str(note).endswith(
        f"chat.yaml:3: model.jumpstart_id: SEA365: warning: the artifact of {MISTRAL} {known.version} comes from the "
        f"catalog and may change\n  hint: pin it: model.s3_uri: {uri}"
    )


def test_a_given_prefix_goes_before_the_look_up(loaded: Loaded) -> None:
    source = model_source(loaded(model=f"{JUMPSTART}\n  s3_uri: s3://mine/copy/"))
    assert (source.weights_s3_uri, source.notes) == ("s3://mine/copy/", ())


def test_given_metadata_goes_before_the_catalog(loaded: Loaded, tmp_path: Path) -> None:
    metadata = {"model_id": MISTRAL, "version": "9.0.0", "hosting_artifact_key": "mine/v9/", "gated_bucket": True}
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "spec.json").write_text(json.dumps(metadata))
    source = model_source(loaded(model=f"{JUMPSTART}\n  jumpstart_metadata: spec.json"))
    assert source.weights_s3_uri == "s3://jumpstart-private-cache-prod-us-east-1/mine/v9/"


def test_metadata_of_another_model_is_refused(loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "endpoints").mkdir()
    (tmp_path / "endpoints" / "spec.json").write_text('{"model_id": "another"}')
    with pytest.raises(RenderError) as error:
        model_source(loaded(model=f"{JUMPSTART}\n  jumpstart_metadata: spec.json"))
    assert str(error.value).endswith(
        f"chat.yaml:6: model.jumpstart_metadata: SEA366: no file describes {MISTRAL}\n"
        "  hint: it holds JumpStart's own specification of the model, as JSON"
    )


def test_an_unknown_jumpstart_id_is_refused_with_every_way_to_mend_it(loaded: Loaded) -> None:
    with pytest.raises(RenderError) as error:
        model_source(loaded(model="jumpstart_id: team-model-of-our-own\n  accept_eula: true"))
    assert str(error.value).endswith(
        "chat.yaml:3: model.jumpstart_id: SEA366: the catalog has no JumpStart model team-model-of-our-own\n"
        "  hint: give model.s3_uri, the artifact's prefix as the model's page names it, or model.jumpstart_metadata, "
        "a copy of its specification (scripts/fetch_jumpstart.py writes one with the SageMaker SDK and your "
        "credentials)"
    )


@pytest.mark.parametrize(
    "model",
    [f"jumpstart_id: {MISTRAL}", "s3_uri: s3://jumpstart-private-cache-prod-us-east-1/meta/v1/"],
)
def test_a_licence_must_be_accepted(model: str, loaded: Loaded) -> None:
    with pytest.raises(SpecError, match=r"SEA112: the licence of .* has not been accepted"):
        loaded(model=model)


def test_metadata_needs_an_id_and_a_file(loaded: Loaded) -> None:
    with pytest.raises(SpecError) as error:
        loaded(model="hub_id: org/model\n  jumpstart_metadata: none.json")
    assert [(problem.field, problem.rule) for problem in error.value.problems] == [
        ("model.jumpstart_metadata", "SEA101"),
        ("model.jumpstart_metadata", "SEA108"),
    ]
