"""The real hub client against a hub of one model on this machine."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from seatrial.stage.source import checksums_of, is_commit, read_hub
from seatrial_base.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("huggingface_hub", reason="the hub client comes with the laptop's dependencies")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS, CONFIG = b"weights" * 1000, b'{"model_type": "llama"}'
CONFIG_BLOB = hashlib.sha1(b"blob %d\0" % len(CONFIG) + CONFIG, usedforsecurity=False).hexdigest()
FILES = {"model.safetensors": WEIGHTS, "config.json": CONFIG}


class Hub(BaseHTTPRequestHandler):
    """Speaks as much of the hub's API as a download needs."""

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.path.startswith("/api/models/org/model/revision/nowhere"):
            self._send(404, b"{}", body=body, headers={"X-Error-Code": "RevisionNotFound", "X-Error-Message": "none"})
        elif self.path.startswith("/api/models/org/model"):
            self._send(200, json.dumps(self._model()).encode(), body=body, headers={})
        elif self.path.startswith(f"/org/model/resolve/{COMMIT}/"):
            content = FILES.get(self.path.rpartition("/")[2].partition("?")[0])
            if content is None:
                self._send(404, b"", body=body, headers={"X-Error-Code": "EntryNotFound"})
                return
            tag = hashlib.sha256(content).hexdigest()
            self._send(200, content, body=body, headers={"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'})
        else:
            headers = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            self._send(404, b"{}", body=body, headers=headers)

    def _model(self) -> dict[str, object]:
        lfs = {"sha256": hashlib.sha256(WEIGHTS).hexdigest(), "size": len(WEIGHTS), "pointerSize": 134}
        large = {"rfilename": "model.safetensors", "size": len(WEIGHTS), "blobId": "1" * 40, "lfs": lfs}
        small = {"rfilename": "config.json", "size": len(CONFIG), "blobId": CONFIG_BLOB}
        return {"id": "org/model", "sha": COMMIT, "siblings": [large, small]}

    def _send(self, status: int, content: bytes, *, body: bool, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's name)
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_files_of_the_commit_that_a_branch_names(endpoint: str, tmp_path: Path) -> None:
    source = read_hub("org/model", None, tmp_path, endpoint=endpoint)
    assert (source.model, source.revision) == ("org/model", COMMIT)
    assert [(file.name, file.size_bytes, file.listed_digest) for file in source.files] == [
        ("config.json", len(CONFIG), f"git-sha1:{CONFIG_BLOB}"),
        ("model.safetensors", len(WEIGHTS), f"sha256:{hashlib.sha256(WEIGHTS).hexdigest()}"),
    ]


def test_a_file_is_lent_and_gone_afterwards(endpoint: str, tmp_path: Path) -> None:
    for file in read_hub("org/model", COMMIT, tmp_path, endpoint=endpoint).files:
        with file.fetch() as path:
            assert path.read_bytes() == FILES[file.name]
            assert checksums_of(path, file.size_bytes).agrees(file.listed_digest)
        assert list(tmp_path.iterdir()) == []


def test_a_repository_that_is_not_there(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(StageError) as error:
        read_hub("org/other", None, tmp_path, endpoint=endpoint)
    (problem,) = error.value.problems
    assert (problem.where, problem.rule) == ("org/other", "SEA360")
    assert problem.message.startswith("the repository can't be read: ")
    assert problem.hint == "accept its licence on the hub, and log in with `hf auth login` or set HF_TOKEN"


def test_a_revision_that_is_not_there(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="SEA360: revision nowhere can't be read: "):
        read_hub("org/model", "nowhere", tmp_path, endpoint=endpoint)


def test_a_hub_that_can_not_be_reached(tmp_path: Path) -> None:
    with pytest.raises(StageError) as error:
        read_hub("org/model", None, tmp_path, endpoint="http://127.0.0.1:9")
    (problem,) = error.value.problems
    assert (problem.where, problem.rule) == ("org/model", "SEA360")
    assert problem.message.startswith("the repository can't be read: ")
    assert problem.hint == "check connection, proxy and HF_ENDPOINT, or stage a folder"


def test_a_download_that_fails_names_the_file(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (config, _) = read_hub("org/model", COMMIT, tmp_path, endpoint=endpoint).files
    monkeypatch.delitem(FILES, "config.json")
    with pytest.raises(StageError, match=r"config\.json: SEA360: it can't be downloaded: "), config.fetch():
        pass


def test_a_name_that_is_no_hub_id(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="a/b/c: SEA360: the repository can't be read: "):
        read_hub("a/b/c", None, tmp_path, endpoint=endpoint)


@pytest.mark.parametrize(("revision", "whole"), [(COMMIT, True), ("main", False), ("v1.0", False), (COMMIT[:7], False)])
def test_only_a_whole_commit_is_pinned(revision: str, whole: bool) -> None:  # noqa: FBT001 (a table's column)
    assert is_commit(revision) is whole
