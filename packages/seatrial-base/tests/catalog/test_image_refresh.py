"""The script that refreshes the table of images, and whether the SDK agrees with what it wrote."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts import build_images
from seatrial_base.catalog import images

LINES = Path(build_images.__file__).parent / "facts" / "image_lines.json"


@pytest.mark.skipif(find_spec("sagemaker") is None, reason="opt-in: uv sync --extra local --extra sagemaker")
def test_the_table_says_what_the_sdk_answers() -> None:
    from sagemaker.core import image_uris  # noqa: PLC0415 (seconds, and only here)

    for line in json.loads(LINES.read_text())["lines"]:
        builds = images.builds_of(line["family"], (line["flavour"],))
        for build in (build for build in builds if "sagemaker-core" in build.source):
            version, asked = build.version.partition("-")[0], {"instance_type": "ml.g5.2xlarge"}
            if line["sdk"] == "huggingface-llm-neuronx":
                asked = {"instance_type": "ml.inf2.xlarge", "inference_tool": "neuronx"}
            if line["sdk"] != "huggingface-vllm-neuronx":  # of which the SDK says "Unsupported processor: inf"
                answer = image_uris.retrieve(
                    line["sdk"], "us-east-1", version=version, image_scope="inference", **asked
                )
                assert images.uri(build, "us-east-1") == answer


OLD: build_images.Row = {
    "family": "lmi",
    "flavour": "vllm",
    "version": "0.36.0-lmi27.0.0",
    "repository": "djl-inference",
    "tag": "0.36.0-lmi27.0.0-cu130",
    "cuda": "cu130",
    "bundles": "vLLM 0.23.1",
    "missing_regions": ["me-west-1"],
    "source": "the first reading",
    "date": "2026-11-20",
}


@pytest.mark.parametrize(
    ("now", "date"),
    [
        ({}, "2026-11-20"),
        ({"bundles": None}, "2026-11-20"),  # the container list was not read this time
        ({"missing_regions": ["me-west-1", "xx-new-1"]}, "2026-11-20"),  # a region that nobody had before
        ({"missing_regions": []}, "2027-01-01"),
        ({"cuda": "cu131"}, "2027-01-01"),
    ],
)
def test_a_refresh_keeps_the_date_of_what_reads_as_before(now: build_images.Row, date: str) -> None:
    before: build_images.Row = {"accounts": {"us-east-1": "1", "me-west-1": "2"}, "rows": [dict(OLD)]}

    (row,) = build_images.merged(before, [OLD | {"source": "another", "date": "2027-01-01"} | now])

    assert (row["date"], row["bundles"]) == (date, "vLLM 0.23.1")


def test_a_refresh_keeps_what_is_no_longer_listed() -> None:
    before: build_images.Row = {"accounts": {}, "rows": [dict(OLD)]}

    assert build_images.merged(before, []) == [OLD]


@pytest.mark.parametrize(
    ("table", "fact", "tag"),
    [
        ("djl-lmi", {"tag_prefix": "0.33.0-lmi15.0.0-cu128"}, "0.33.0-lmi15.0.0-cu128"),
        (
            "vllm",
            {"tag_prefix": "0.30.0", "py_versions": ["py312"], "container_version": {"gpu": "cu130-sagemaker"}},
            "0.30.0-gpu-py312-cu130-sagemaker",
        ),
        (
            "vllm-server",
            {"tag_prefix": "server", "processor_in_tag": False, "container_version": {"gpu": "cuda-v2.6"}},
            "server-cuda-v2.6",
        ),
        (
            "huggingface-llm-neuronx",
            {"tag_prefix": "2.7.0-optimum3", "py_versions": ["py310"], "container_version": {"inf2": "ubuntu22.04"}},
            "2.7.0-optimum3-neuronx-py310-ubuntu22.04",
        ),
    ],
)
def test_a_tag_is_composed_as_the_sdk_does(table: str, fact: build_images.Row, tag: str) -> None:
    assert build_images.sdk_tag(table, fact) == tag
