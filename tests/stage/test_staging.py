"""A model is copied whole, gone on with, mended and left alone, against the embedded AWS."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import nullcontext
from dataclasses import replace as changed
from typing import TYPE_CHECKING

import pytest

from seatrial.stage.destination import MANIFEST, Destination
from seatrial.stage.source import ModelFiles, SourceFile, StoppedError, read_folder
from seatrial.stage.staging import survey
from seatrial_base.errors import StageError
from seatrial_base.units import MIB
from tests.stage.conftest import LARGE_BYTES, patterned

if TYPE_CHECKING:
    from pathlib import Path

    from tests.stage.conftest import Bucket, Stage

NAMES = ["config.json", "empty.txt", "model.safetensors", "nested/vocab.txt"]


def content(destination: Destination, name: str) -> bytes:
    return destination.s3.get_object(Bucket=destination.bucket, Key=destination.key(name))["Body"].read()


def put(destination: Destination, name: str, body: bytes) -> None:
    destination.s3.put_object(Bucket=destination.bucket, Key=destination.key(name), Body=body)


class Counted:
    """Counts the bytes that have arrived, and stops the work once they are enough."""

    def __init__(self, stop: threading.Event | None = None, *, enough_bytes: int = 0) -> None:
        self.total_bytes = 0
        self.stop, self.enough_bytes = stop, enough_bytes

    def __call__(self, count: int) -> None:
        self.total_bytes += count
        if self.stop is not None and self.total_bytes >= self.enough_bytes:
            self.stop.set()


class TestAWholeCopy:
    def test_every_file_arrives_as_it_is(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination, counted = bucket.fresh(), Counted()
        found, _ = stage(model, destination, on_bytes=counted)
        assert [look.file.name for look in found.missing] == NAMES
        assert bucket.keys(destination) == sorted([*NAMES, MANIFEST])
        assert all(content(destination, name) == (model / name).read_bytes() for name in NAMES)
        assert counted.total_bytes == sum((model / name).stat().st_size for name in NAMES)

    def test_the_manifest_lists_each_file_with_its_digest(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        stage(model, destination)
        told = json.loads(content(destination, MANIFEST))
        assert (told["schema_version"], told["model"], told["revision"]) == ("1", "tiny-chat", None)
        assert {file["name"]: file["sha256"] for file in told["files"]} == {
            name: hashlib.sha256((model / name).read_bytes()).hexdigest() for name in NAMES
        }
        large = next(file for file in told["files"] if file["name"] == "model.safetensors")
        assert large["checksum_sha256"].endswith("-2")  # composite: 33 MiB in parts of 32 MiB

    def test_the_same_folder_gives_the_same_manifest(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        manifests = []
        for _ in range(2):
            destination = bucket.fresh()
            stage(model, destination)
            manifests.append(content(destination, MANIFEST))
        assert manifests[0] == manifests[1]

    def test_a_second_time_there_is_nothing_to_do(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        stage(model, destination)
        before = {name: destination.head(name) for name in [*NAMES, MANIFEST]}
        found, _ = stage(model, destination)
        assert found.missing == ()
        after = {name: destination.head(name) for name in [*NAMES, MANIFEST]}
        assert [head and head["LastModified"] for head in before.values()] == [
            head and head["LastModified"] for head in after.values()
        ]

    def test_a_key_encrypts_the_objects_and_the_manifest(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = changed(bucket.fresh(), kms_key="alias/weights")
        stage(model, destination)
        for name in (*NAMES, MANIFEST):
            head = destination.head(name)
            assert head is not None
            assert head.get("ServerSideEncryption") == "aws:kms", name


class TestAnInterruptedCopy:
    def test_has_no_manifest_and_goes_on_from_the_parts_that_arrived(
        self, bucket: Bucket, model: Path, stage: Stage
    ) -> None:
        destination, stop = bucket.fresh(), threading.Event()
        with pytest.raises(StoppedError):
            stage(model, destination, stop=stop, on_bytes=Counted(stop, enough_bytes=32 * MIB))
        assert MANIFEST not in bucket.keys(destination)
        assert "model.safetensors" not in bucket.keys(destination)
        (begun,) = bucket.s3.list_multipart_uploads(Bucket=bucket.name, Prefix=destination.prefix)["Uploads"]
        parts = bucket.s3.list_parts(Bucket=bucket.name, Key=begun["Key"], UploadId=begun["UploadId"])["Parts"]
        assert len(parts) == 1

        stage(model, destination)
        assert content(destination, "model.safetensors") == (model / "model.safetensors").read_bytes()
        assert MANIFEST in bucket.keys(destination)
        assert "Uploads" not in bucket.s3.list_multipart_uploads(Bucket=bucket.name, Prefix=destination.prefix)

    def test_sends_no_part_a_second_time(
        self, bucket: Bucket, model: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        destination, stop = bucket.fresh(), threading.Event()
        with pytest.raises(StoppedError):
            stage(model, destination, stop=stop, on_bytes=Counted(stop, enough_bytes=32 * MIB))
        sent: list[int] = []
        upload_part = bucket.s3.upload_part

        def counting(**arguments: object) -> object:
            sent.append(int(str(arguments["PartNumber"])))
            return upload_part(**arguments)  # type: ignore[arg-type]  # passed on as it came

        monkeypatch.setattr(bucket.s3, "upload_part", counting)
        stage(model, destination)
        assert sent == [2]

    def test_a_part_of_other_content_is_sent_again(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination, stop = bucket.fresh(), threading.Event()
        with pytest.raises(StoppedError):
            stage(model, destination, stop=stop, on_bytes=Counted(stop, enough_bytes=32 * MIB))
        (model / "model.safetensors").write_bytes(patterned(LARGE_BYTES, salt=1000))
        stage(model, destination)
        assert content(destination, "model.safetensors") == patterned(LARGE_BYTES, salt=1000)


class TestWhatIsThere:
    @pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
    def test_a_corrupted_object_of_the_same_size_is_written_again(
        self, name: str, bucket: Bucket, model: Path, stage: Stage
    ) -> None:
        destination = bucket.fresh()
        stage(model, destination)
        right = (model / name).read_bytes()
        put(destination, name, b"\xff" + right[1:])
        found, _ = stage(model, destination)
        assert [look.file.name for look in found.missing] == [name]
        assert content(destination, name) == right

    def test_a_deleted_manifest_is_written_again_without_a_copy(
        self, bucket: Bucket, model: Path, stage: Stage
    ) -> None:
        destination = bucket.fresh()
        stage(model, destination)
        bucket.s3.delete_object(Bucket=bucket.name, Key=destination.key(MANIFEST))
        found, _ = stage(model, destination)
        assert found.missing == ()
        assert MANIFEST in bucket.keys(destination)

    def test_another_content_is_refused_and_nothing_is_touched(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        stage(model, destination)
        old = content(destination, "config.json")
        (model / "config.json").write_text('{"model_type": "falcon"}')
        with pytest.raises(StageError) as error:
            stage(model, destination)
        assert str(error.value) == (
            f"{destination.uri}: SEA364: the prefix holds other files of tiny-chat\n"
            "  hint: endpoints may use it: choose another prefix, or overwrite it with --replace"
        )
        assert content(destination, "config.json") == old
        assert MANIFEST in bucket.keys(destination)
        stage(model, destination, replace=True)
        assert content(destination, "config.json") == b'{"model_type": "falcon"}'

    def test_what_is_not_of_the_model_is_told(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        put(destination, "left-over.bin", b"?")
        found, manifest = stage(model, destination)
        assert found.others == ("left-over.bin",)
        assert [file.name for file in manifest.files] == NAMES


class TestFailures:
    def test_a_missing_bucket(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        with pytest.raises(StageError) as error:
            stage(model, Destination(bucket.s3, "no-such-bucket-here", "a/"))
        assert str(error.value) == (
            "s3://no-such-bucket-here/a/: SEA361: there is no such bucket\n"
            "  hint: use an existing bucket with write access; check the account and region of your credentials"
        )

    def test_every_file_that_fails_is_listed_and_the_rest_arrives(
        self, bucket: Bucket, model: Path, stage: Stage
    ) -> None:
        destination, source = bucket.fresh(), read_folder(model)
        for name in ("config.json", "nested/vocab.txt"):
            (model / name).unlink()
        with pytest.raises(StageError) as error:
            stage(source, destination)
        assert [(problem.where, problem.rule) for problem in error.value.problems] == [
            ("config.json", "SEA362"),
            ("nested/vocab.txt", "SEA362"),
        ]
        assert bucket.keys(destination) == ["empty.txt", "model.safetensors"]

    def test_a_file_that_grew_since_it_was_listed(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        source = read_folder(model)
        (model / "config.json").write_text("a longer text than before it was listed")
        with pytest.raises(StageError) as error:
            stage(source, bucket.fresh())
        assert str(error.value) == (
            "config.json: SEA363: 39 bytes were read, but the source lists 23 bytes with another checksum\n"
            "  hint: stage it again when nothing writes to it"
        )


def told_source(path: Path, told: str, *, revision: str = "a" * 40) -> ModelFiles:
    file = SourceFile(path.name, path.stat().st_size, told, lambda: nullcontext(path))
    return ModelFiles("org/model", revision, (file,))


class TestASourceThatTellsDigests:
    """As the hub does: SHA-256 of large files, the id of the git blob of small ones."""

    @pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
    def test_is_looked_at_without_fetching(self, name: str, bucket: Bucket, model: Path, stage: Stage) -> None:
        path, destination = model / name, bucket.fresh()
        source = told_source(path, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
        stage(source, destination)
        path.unlink()  # the second look must not need it
        assert survey(source, destination, threading.Event()).missing == ()

    def test_a_git_blob_is_enough_for_a_small_file(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        path, destination = model / "nested" / "vocab.txt", bucket.fresh()
        source = told_source(path, "git-sha1:ce013625030ba8dba906f756967f9e9ca394464a")  # git hash-object
        _, manifest = stage(source, destination)
        assert manifest.files[0].sha256 == hashlib.sha256(b"hello\n").hexdigest()
        assert survey(source, destination, threading.Event()).missing == ()

    def test_what_arrives_otherwise_is_not_staged(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        with pytest.raises(StageError) as error:
            stage(told_source(model / "config.json", f"sha256:{'0' * 64}"), destination)
        assert [problem.rule for problem in error.value.problems] == ["SEA363"]
        assert bucket.keys(destination) == []

    def test_a_corrupted_object_is_written_again(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        path, destination = model / "model.safetensors", bucket.fresh()
        source = told_source(path, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
        stage(source, destination)
        put(destination, path.name, b"\xff" * LARGE_BYTES)
        found, _ = stage(source, destination)
        assert len(found.missing) == 1
        assert content(destination, path.name) == path.read_bytes()

    def test_another_revision_under_the_same_prefix_is_refused(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        path, destination = model / "config.json", bucket.fresh()
        told = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        stage(told_source(path, told), destination)
        with pytest.raises(StageError) as error:
            stage(told_source(path, told, revision="b" * 40), destination)
        assert error.value.problems[0].message == f"the prefix holds org/model at {'a' * 40}"

    def test_more_files_of_the_same_revision_join_the_manifest(self, bucket: Bucket, model: Path, stage: Stage) -> None:
        destination = bucket.fresh()
        for name in ("config.json", "model.safetensors"):
            path = model / name
            stage(told_source(path, f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"), destination)
        told = json.loads(content(destination, MANIFEST))
        assert [file["name"] for file in told["files"]] == ["config.json", "model.safetensors"]
