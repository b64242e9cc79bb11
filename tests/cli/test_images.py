"""`seatrial images` as a user runs it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import seal_of
from tests.cli.conftest import SPECS, files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Seatrial

SPEC = SPECS[1]
LOCK = "endpoints/llama-2-7b-chat.lock.json"
TAG = "0.36.0-lmi27.0.0-cu130"
DIGEST = "sha256:" + "1" * 64
NOBODY = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "none",
    "AWS_SHARED_CREDENTIALS_FILE": "none",
    "AWS_ACCESS_KEY_ID": "",
    "AWS_SECRET_ACCESS_KEY": "",
}


@contextmanager
def registry(digest: str, meanwhile: Callable[[], None] = lambda: None) -> Iterator[dict[str, str]]:
    """Stand for Amazon ECR on this machine; yields the variables that lead the SDK to it.

    Args:
        digest: Of every image.
        meanwhile: What somebody else does while it is asked.
    """

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            meanwhile()
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = {"imageId": asked["imageIds"][0] | {"imageDigest": digest}}
            body = json.dumps({"images": [found], "failures": []}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield {"AWS_ENDPOINT_URL_ECR": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        finally:
            server.shutdown()


@pytest.fixture
def locked(seatrial: Seatrial, project: Path) -> Path:
    done = seatrial("plan", SPEC, "-e", "dev", "--write")
    assert done.returncode == 0, done.stderr
    return project / LOCK


def locked_image(file: Path) -> dict[str, str]:
    image: dict[str, str] = json.loads(file.read_text())["environments"]["dev"]["image"]["value"]
    return image


def replace_in_lock(file: Path, old: str, new: str) -> None:
    """Write the lock as it would be of a release that planned other values."""
    document = json.loads(file.read_text().replace(old, new))
    document["digests"] = {name: seal_of(plan).model_dump() for name, plan in document["environments"].items()}
    file.write_text(json.dumps(document))


def test_the_list_shows_the_newest_of_a_line_first(seatrial: Seatrial) -> None:
    done = seatrial("images", "list", "--engine", "lmi", "--flavour", "trtllm", "--region", "eu-west-1")

    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["engine", "flavour", "version", "bundles", "read", "cuda", "regions", "image"]
    assert lines[1].split() == [
        "lmi",
        "trtllm",
        "0.33.0-tensorrtllm0.21.0",
        "TensorRT-LLM",
        "0.21.0",
        "yes",
        "cu128",
        "1",
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.33.0-tensorrtllm0.21.0-cu128",
    ]
    assert lines[-2:] == [
        "LMI's TensorRT-LLM images are frozen: the newest is DJL 0.33 (LMI 15).",
        "From AWS's lists, not pulled: sagemaker-core 2.27.0 wheel sagemaker/core/image_uri_config/*.json, 2026-11-20.",
    ]


def test_the_table_fits_80_columns_and_wide_tells_where_an_image_lies(seatrial: Seatrial) -> None:
    table, _, notes = seatrial("images", "list").stdout.partition("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert "--wide shows CUDA, regions, repositories and tags" in notes
    assert TAG in seatrial("images", "list", "--wide").stdout


def test_the_list_for_machines_holds_every_region(seatrial: Seatrial) -> None:
    rows = json.loads(seatrial("images", "list", "--format", "json").stdout)["images"]
    newest = next(row for row in rows if row["tag"] == TAG)

    assert {row["engine"] for row in rows} == {"lmi", "tgi", "vllm", "sglang"}
    assert (newest["lmi"], newest["bundles"], newest["cuda"]) == (27, "vLLM 0.23.1", "cu130")
    assert newest["ami_version"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert {"us-east-1", "cn-north-1"} < set(newest["regions"])
    assert newest["uri"] is None


def test_what_fits_nothing_is_told(seatrial: Seatrial) -> None:
    assert seatrial("images", "list", "--flavour", "nothing").stdout == "no image matches\n"


def test_an_unknown_region_is_one_message(seatrial: Seatrial) -> None:
    done = seatrial("images", "list", "--region", "us-easy-1")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("SEA303: no image is known for us-easy-1\n  hint: known: us-east-1")


def test_without_credentials_the_tag_is_pinned_and_the_digest_is_not(
    seatrial: Seatrial, project: Path, locked: Path
) -> None:
    before = files(project)
    done = seatrial("images", "lock", SPEC, "-e", "dev", env=NOBODY)

    assert (done.returncode, done.stdout) == (0, "")
    assert "SEA503: there are no AWS credentials: Unable to locate credentials\n  hint: log in" in done.stderr
    assert done.stderr.endswith(f"pinned by tag only, without digest: djl-inference:{TAG}\n")
    assert files(project) == before
    assert locked_image(locked)["tag"] == TAG


def test_who_requires_the_digest_is_refused_without_credentials(seatrial: Seatrial, locked: Path) -> None:
    done = seatrial("images", "lock", SPEC, "-e", "dev", "--require-digest", env=NOBODY)

    assert (done.returncode, done.stdout) == (1, "")
    assert "SEA503" in done.stderr
    assert locked_image(locked)["uri"].endswith(f":{TAG}")


def test_the_digest_is_pinned_and_a_tag_that_moved_is_told(seatrial: Seatrial, locked: Path) -> None:
    with registry(DIGEST) as account:
        first = seatrial("images", "lock", SPEC, "-e", "dev", env=account)
        pinned = locked.read_bytes()
        again = seatrial("images", "lock", SPEC, "-e", "dev", env=account)
    with registry("sha256:" + "2" * 64) as account:
        moved = seatrial("images", "lock", SPEC, "-e", "dev", env=account)

    assert first.returncode == 0, first.stderr
    assert first.stdout == f"djl-inference:{TAG} is pinned to {DIGEST}\n"
    assert again.stdout == f"djl-inference:{TAG} is pinned to {DIGEST}; the tag is unchanged\n"
    assert json.loads(pinned)["environments"]["dev"]["image"]["value"] == {
        "repository": "djl-inference",
        "tag": TAG,
        "uri": f"763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference@{DIGEST}",
    }
    assert moved.stderr.startswith(f"the tag {TAG} has moved; it was pinned to {DIGEST}\n")
    assert locked_image(locked)["uri"].endswith("@sha256:" + "2" * 64)


def test_what_somebody_changed_while_the_registry_was_asked_is_kept(seatrial: Seatrial, locked: Path) -> None:
    def plan_again() -> None:
        replace_in_lock(locked, "An instance has", "An instance had")

    assert "An instance has" in locked.read_text()
    with registry(DIGEST, plan_again) as account:
        done = seatrial("images", "lock", SPEC, "-e", "dev", env=account)
    assert done.returncode == 0, done.stderr
    assert locked_image(locked)["uri"].endswith(f"@{DIGEST}")
    assert "An instance had" in locked.read_text()


def test_the_digest_of_an_image_that_is_no_longer_planned_is_not_pinned(seatrial: Seatrial, locked: Path) -> None:
    with registry(DIGEST, lambda: replace_in_lock(locked, TAG, "0.35.0-lmi17.0.0-cu128")) as account:
        done = seatrial("images", "lock", SPEC, "-e", "dev", env=account)
    assert done.returncode == 1
    assert "SEA350: the plan names another image since the registry was asked" in done.stderr
    assert locked_image(locked)["tag"] == "0.35.0-lmi17.0.0-cu128"
    assert DIGEST not in locked.read_text()


def test_a_pinned_plan_is_rendered(seatrial: Seatrial, locked: Path) -> None:
    with registry(DIGEST) as account:
        seatrial("images", "lock", SPEC, "-e", "dev", env=account)
    done = seatrial("render", SPEC, "-e", "dev")

    assert done.returncode == 0, done.stderr
    assert "option.model_id=meta-llama/Llama-2-7b-chat-hf" in done.stdout


def test_without_a_lock_there_is_nothing_to_pin(seatrial: Seatrial, project: Path) -> None:
    (project / LOCK).unlink()
    done = seatrial("images", "lock", SPEC, "-e", "dev", env=NOBODY)

    assert (done.returncode, done.stdout) == (2, "")
    assert "SEA401: there is no lock" in done.stderr


def test_the_newest_documented_build_is_not_outdated(seatrial: Seatrial, locked: Path) -> None:
    done = seatrial("images", "outdated", SPEC, "-e", "dev", "--check")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "llama-2-7b-chat in dev: lmi 0.36.0-lmi27.0.0 is the newest documented build\n"
        "  unverified: 0.36.0-lmi28.0.0, 0.38.0-lmi29.0.0\n"
    )


def test_what_a_newer_build_changes_is_told(seatrial: Seatrial, locked: Path) -> None:
    replace_in_lock(locked, TAG, "0.35.0-lmi17.0.0-cu128")
    text = seatrial("images", "outdated", SPEC, "-e", "dev", "--check")
    (row,) = json.loads(seatrial("images", "outdated", SPEC, "-e", "dev", "--format", "json").stdout)["endpoints"]

    assert text.returncode == 1
    assert text.stdout == (
        "llama-2-7b-chat in dev: lmi 0.35.0-lmi17.0.0 -> 0.36.0-lmi27.0.0 (10 newer documented builds)\n"
        "  LMI: 17 -> 27\n"
        "  vLLM: 0.11.1 -> 0.23.1\n"
        "  CUDA: 12.8 -> 13.0\n"
        "  InferenceAmiVersion: the service's default -> al2023-ami-sagemaker-inference-gpu-4-1\n"
        "  to update: seatrial plan endpoints/llama-2-7b-chat.yaml -e dev --write\n"
        "  unverified: 0.36.0-lmi28.0.0, 0.38.0-lmi29.0.0\n"
    )
    assert (row["newer"][-1], row["changes"][0]) == (
        "0.36.0-lmi27.0.0",
        {"what": "LMI", "before": "17", "after": "27"},
    )


def test_a_build_that_was_not_read_has_no_newer_documented_one(seatrial: Seatrial, locked: Path) -> None:
    replace_in_lock(locked, TAG, "0.36.0-lmi28.0.0-cu130")

    assert seatrial("images", "outdated", SPEC, "-e", "dev").stdout == (
        "llama-2-7b-chat in dev: lmi 0.36.0-lmi28.0.0 has no newer documented build\n  unverified: 0.38.0-lmi29.0.0\n"
    )


def test_an_image_of_the_users_is_not_judged(seatrial: Seatrial, locked: Path) -> None:
    replace_in_lock(locked, TAG, "our-own-1")

    assert seatrial("images", "outdated", SPEC, "-e", "dev", "--check").stdout == (
        "llama-2-7b-chat in dev: 763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:our-own-1 is not in the "
        "catalog; newer builds are unknown\n"
    )
