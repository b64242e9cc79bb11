"""The calibration beside a spec: which entry counts, and what is wrong with a file that can't be used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.specs.load import environment_names, load_spec
from seatrial.specs.spec_files import calibration_document, calibration_path
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

HINT = "\n  hint: run `seatrial calibrate` again, or delete the file"
DEV = {"fixed": 1.1, "marginal": [0.9, 1.2]}


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


def calibrate(write: Write, environments: object = None, **others: object) -> Path:
    document = {"schema_version": "1", "environments": {"dev": DEV} if environments is None else environments, **others}
    return write(json.dumps(document), "chat.calibration.json")


def test_it_lies_beside_its_spec(tmp_path: Path) -> None:
    assert calibration_path(tmp_path / "chat.yaml") == tmp_path / "chat.calibration.json"
    assert calibration_path(tmp_path / "chat.v2.yaml") == tmp_path / "chat.v2.calibration.json"


def test_the_entry_of_the_environment_counts(write: Write, endpoint_text: str) -> None:
    calibrate(write)
    spec = write(endpoint_text)

    assert calibration_document(spec, "dev") == DEV
    assert calibration_document(spec, "prod") is None


def test_without_a_file_there_is_none(write: Write, environments: Path, endpoint_text: str) -> None:
    spec = write(endpoint_text)

    assert calibration_document(spec, "dev") is None
    assert load_spec(spec, "dev", environments=environments).calibration is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", id="no-json"),
        pytest.param("", "Expecting value: line 1 column 1 (char 0)", id="empty"),
        pytest.param('{"a": NaN}', "NaN is not a JSON number", id="nan"),
        pytest.param("[]", "not a JSON object", id="a-list"),
        pytest.param("{}", "schema_version is None, not '1'", id="no-version"),
        pytest.param('{"schema_version": "2"}', "schema_version is '2', not '1'", id="a-later-version"),
        pytest.param('{"schema_version": 1}', "schema_version is 1, not '1'", id="a-number"),
        pytest.param('{"schema_version": "1"}', "environments is not a mapping", id="no-environments"),
        pytest.param(
            '{"schema_version": "1", "environments": {"dev": []}}', "the entry dev is not a mapping", id="no-entry"
        ),
    ],
)
def test_a_file_that_can_not_be_used_is_told(
    text: str, reason: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    spec, file = write(endpoint_text), write(text, "chat.calibration.json")

    with pytest.raises(SpecError) as caught:
        load_spec(spec, "dev", environments=environments)

    assert str(caught.value) == f"{file.as_posix()}: SEA405: the calibration can't be read: {reason}{HINT}"


def test_deep_text_is_told(write: Write, endpoint_text: str) -> None:
    write("[" * 100_000, "chat.calibration.json")

    with pytest.raises(SpecError, match="SEA405: the calibration can't be read: "):
        calibration_document(write(endpoint_text), "dev")


def test_a_folder_in_its_place_is_told(write: Write, endpoint_text: str) -> None:
    spec = write(endpoint_text)
    calibration_path(spec).mkdir()

    with pytest.raises(SpecError, match="SEA405: the calibration can't be read: "):
        calibration_document(spec, "dev")


def test_it_is_told_beside_the_spec_s_own_mistakes(write: Write, environments: Path, endpoint_text: str) -> None:
    spec = write(endpoint_text.replace("concurrency: 8", "concurrency: 0"))
    write("{}", "chat.calibration.json")

    with pytest.raises(SpecError) as caught:
        load_spec(spec, "dev", environments=environments)

    assert [problem.rule for problem in caught.value.problems] == ["SEA405", "SEA107"]


def test_a_loaded_calibration_can_not_be_changed(write: Write, environments: Path, endpoint_text: str) -> None:
    calibrate(write)
    loaded = load_spec(write(endpoint_text), "dev", environments=environments)
    before = loaded.digest

    taken = loaded.calibration
    assert isinstance(taken, dict)
    taken["fixed"] = 2

    assert loaded.calibration == DEV
    assert loaded.digest == before


class TestDigest:
    def test_it_changes_with_the_entry(self, write: Write, environments: Path, endpoint_text: str) -> None:
        def digest(environment: str = "dev") -> str:
            return load_spec(write(endpoint_text), environment, environments=environments).digest

        without, prod = digest(), digest("prod")
        calibrate(write)
        calibrated = digest()
        calibrate(write, {"dev": {**DEV, "fixed": 1.2}})
        again = digest()

        assert len({without, calibrated, again}) == 3
        assert digest("prod") == prod

    def test_the_entry_of_another_environment_does_not_count(
        self, write: Write, environments: Path, endpoint_text: str
    ) -> None:
        calibrate(write)
        spec = write(endpoint_text)
        first = load_spec(spec, "dev", environments=environments).digest
        calibrate(write, {"prod": {"fixed": 3}, "dev": dict(reversed(DEV.items()))}, note="written later")

        assert load_spec(spec, "dev", environments=environments).digest == first


def test_it_is_taken_for_no_environment(environments: Path) -> None:
    (environments / "dev.calibration.json").write_text("{}")

    assert environment_names(environments) == ("dev", "prod")
