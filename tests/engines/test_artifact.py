from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from seatrial.engines.render import code_files
from seatrial.packaging import tar_gz_bytes
from seatrial_base.errors import RenderError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.engines.conftest import Loaded

CODE = "serving: {code: code}"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "endpoints" / "code"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "requirements.txt").write_text("einops\n")
    (folder / "model.py").write_text("def handle(inputs): ...\n")
    (folder / "lib" / "words.py").write_text("")
    (folder / "__pycache__" / "model.pyc").write_bytes(b"\xff")
    (folder / ".secret").write_text("left out")
    return folder


def packed(loaded: Loaded) -> bytes:
    return tar_gz_bytes({name: text.encode() for name, text in code_files(loaded(CODE)).items()})


def test_no_folder_no_files(loaded: Loaded) -> None:
    assert code_files(loaded()) == {}


def test_the_files_of_the_folder_sorted_without_caches_and_hidden_ones(loaded: Loaded, code: Path) -> None:
    assert list(code_files(loaded(CODE))) == ["lib/words.py", "model.py", "requirements.txt"]
    assert code_files(loaded(CODE))["requirements.txt"] == "einops\n"


def test_times_and_modes_do_not_change_the_archive_but_content_does(loaded: Loaded, code: Path) -> None:
    before = packed(loaded)
    os.utime(code / "model.py", (1, 1))
    (code / "model.py").chmod(0o600)
    assert packed(loaded) == before
    (code / "model.py").write_text("def handle(inputs): return inputs\n")
    assert packed(loaded) != before


def test_everything_that_can_not_be_packaged_is_listed(loaded: Loaded, code: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("")
    (code / "away.py").symlink_to(tmp_path / "outside.py")
    (code / "weights.bin").write_bytes(b"\xff\xfe\x00")
    (code / "serving.properties").write_text("engine=Python\n")
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE))
    assert [(problem.field, problem.rule, problem.message) for problem in error.value.problems] == [
        ("serving.code", "SEA368", "away.py points outside of the folder"),
        ("serving.code", "SEA368", "serving.properties is written from the plan"),
        ("serving.code", "SEA368", "weights.bin is not UTF-8 text"),
    ]


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 2_000])
def test_a_path_that_is_too_long_for_a_folder_is_none(loaded: Loaded, name: str) -> None:
    with pytest.raises(RenderError) as error:
        code_files(loaded(f"serving: {{code: {name}}}"))
    (problem,) = error.value.problems
    assert (problem.field, problem.rule, "is not a folder" in problem.message) == ("serving.code", "SEA368", True)


def test_a_large_folder_is_pointed_to_staging(loaded: Loaded, code: Path) -> None:
    (code / "table.txt").write_text("a" * (10 * 2**20))
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE))
    assert [problem.message for problem in error.value.problems] == ["the folder's 10,485,791 bytes exceed 10,485,760"]
    assert error.value.problems[0].hint == "stage weights instead (seatrial stage)"


def test_a_missing_folder(loaded: Loaded) -> None:
    with pytest.raises(RenderError, match=r"SEA368: code is not a folder"):
        code_files(loaded(CODE))


def test_mounted_weights_leave_no_place_for_code(loaded: Loaded, code: Path) -> None:
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE, model="s3_uri: s3://bucket/model/"))
    assert [str(problem).partition(": serving")[2] for problem in error.value.problems] == [
        ".code: SEA368: the code and the mounted weights both use /opt/ml/model\n"
        "  hint: put the code with the weights, and stage both"
    ]


KEY_ID, HUB = "AKIA" + "Z3X5C7V9B1N2M4Q6", "hf_" + "Qw3rTyUiOpAsDfGhJkLzXcVbNm1234567"


def refused(loaded: Loaded, spec: str = CODE) -> list[str]:
    with pytest.raises(RenderError) as error:
        code_files(loaded(spec))
    assert {problem.field for problem in error.value.problems} == {"serving.code"}
    return [f"{problem.rule}: {problem.message}" for problem in error.value.problems]


def test_every_file_that_holds_a_credential_is_told_with_its_lines_and_without_the_credential(
    loaded: Loaded, code: Path
) -> None:
    (code / "model.py").write_text(f'ID = "{KEY_ID}"\n\nTOKEN = "{HUB}"\nAGAIN = "{HUB}"\n')
    (code / "lib" / "settings.json").write_text('{"password": "hunter2"}')
    (code / "requirements.txt").write_text("--extra-index-url https://user:hunter2@pypi.example.org/simple\n")
    assert refused(loaded) == [
        "SEA369: lib/settings.json contains a secret value (line 1)",
        "SEA369: model.py contains a Hugging Face token (line 3, 4); an AWS access key id (line 1)",
        "SEA369: requirements.txt contains a password in a URL (line 1)",
    ]


def test_code_that_reads_its_token_from_the_environment_is_packaged(loaded: Loaded, code: Path) -> None:
    text = 'import os\n\ntoken = os.environ["HF_TOKEN"]\napi_key = "<your-token>"\npad_token = "</s>"\n'
    (code / "model.py").write_text(text)
    assert code_files(loaded(CODE))["model.py"] == text


@pytest.mark.parametrize("name", ["id_rsa", "server.pem", "lib/tls.key", "credentials", "store.P12"])
def test_a_file_of_keys_is_refused_by_its_name(name: str, loaded: Loaded, code: Path) -> None:
    (code / name).write_text("nothing\n")
    assert refused(loaded) == [f"SEA369: {name} has the name of a credentials file"]


def test_a_credential_in_a_file_name_is_refused_and_not_repeated(loaded: Loaded, code: Path) -> None:
    (code / f"{HUB}.txt").write_text("nothing\n")
    assert refused(loaded) == ["SEA369: hf_….txt has the name of a credentials file"]


@pytest.mark.parametrize("name", [".env", ".netrc", ".npmrc", ".git/config", ".aws/credentials", "__pycache__/x.pem"])
def test_hidden_files_and_caches_are_never_packaged(name: str, loaded: Loaded, code: Path) -> None:
    (code / name).parent.mkdir(exist_ok=True)
    (code / name).write_text(f"HF_TOKEN={HUB}\n")
    assert list(code_files(loaded(CODE))) == ["lib/words.py", "model.py", "requirements.txt"]


def test_a_text_in_an_encoding_that_no_search_reads_is_refused(loaded: Loaded, code: Path) -> None:
    (code / "notes.txt").write_bytes(HUB.encode("utf-16-le"))
    assert refused(loaded) == ["SEA368: notes.txt is not UTF-8 text"]


def test_links_to_folders_are_refused_wherever_they_lead(loaded: Loaded, code: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (code / "away").symlink_to(tmp_path / "outside", target_is_directory=True)
    (code / "here").symlink_to(code / "lib", target_is_directory=True)
    (code / "loop").symlink_to(code / "loop")
    assert refused(loaded) == [
        "SEA368: away points outside of the folder",
        "SEA368: here is a link to a folder",
        "SEA368: loop points outside of the folder",
    ]


@pytest.mark.parametrize("name", ["/etc", "~/code", "C:/code"])
def test_an_absolute_path_is_refused_and_not_read(name: str, loaded: Loaded) -> None:
    assert refused(loaded, f"serving: {{code: '{name}'}}") == [f"SEA368: {name} is an absolute path"]


@pytest.mark.parametrize("through_link", [False, True])
def test_a_folder_outside_the_repository_is_refused_and_not_read(
    through_link: bool,  # noqa: FBT001 (a table's column)
    loaded: Loaded,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "model.py").write_text("")
    name = os.path.relpath(outside, tmp_path / "endpoints")
    if through_link:
        name = "linked"
        (tmp_path / "endpoints").mkdir()
        (tmp_path / "endpoints" / name).symlink_to(outside, target_is_directory=True)
    assert refused(loaded, f"serving: {{code: {name}}}") == [f"SEA368: {name} is outside of the repository {tmp_path}"]


@pytest.mark.parametrize("mark", [".git", "cdk.json"])
def test_a_folder_elsewhere_in_the_repository_is_packaged(mark: str, loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / mark).touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "model.py").write_text("")
    assert list(code_files(loaded("serving: {code: ../shared}"))) == ["model.py"]
