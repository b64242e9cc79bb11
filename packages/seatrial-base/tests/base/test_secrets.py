"""A planted credential is refused wherever it stands in plain text, and none of it is repeated but its kind."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.deployment.load import load_deployments
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError
from seatrial_base.secrets import SHOWN, credentials, holds_credential, redacted

if TYPE_CHECKING:
    from tests.command_line import CommandLine

REPOSITORY = Path(__file__).parents[4]
HUB = "hf_" + "Qw3rTyUiOpAsDfGhJkLzXcVbNm1234567"
AWS_ID = "AKIA" + "Z3X5C7V9B1N2M4Q6"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYplantedKEYx"[:40]
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAplanted\n"
TOKENS = (HUB, AWS_ID, GITHUB)

SPEC = """\
name: chat
description: {description}
model:
  hub_id: {hub_id}
  hub_token_secret: {hub_token_secret}
workload: {{input_tokens: {input_tokens}, output_tokens: 128, concurrency: 8}}
serving:
  overrides:
    extra: {{{option}: {value}}}
environments:
  prod: {{description: {other}}}
"""
PLAIN = {
    "description": "for people",
    "hub_id": "org/model",
    "hub_token_secret": "my/token",
    "input_tokens": "256",
    "option": "seed",
    "value": "1",
    "other": "for people",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("endpoints", "environments"):
        (tmp_path / name).mkdir()
    for name in ("dev", "prod"):
        (tmp_path / "environments" / f"{name}.yaml").write_text(f"name: {name}\nregion: us-east-1\n")
    return tmp_path


def write(folder: Path, **planted: str) -> Path:
    spec = folder / "endpoints" / "chat.yaml"
    spec.write_text(SPEC.format(**PLAIN | planted))
    return spec


def assert_hidden(text: str, token: str) -> None:
    assert token[: SHOWN + 1] not in text
    assert token[SHOWN:] not in text


def test_the_spec_without_a_credential_is_read(folder: Path) -> None:
    assert load_spec(write(folder), "dev", environments=folder / "environments").endpoint.name == "chat"


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("description", "description"),
        ("hub_id", "model.hub_id"),
        ("hub_token_secret", "model.hub_token_secret"),
        ("input_tokens", "workload.input_tokens"),
        ("value", "serving.overrides.extra.seed"),
        ("other", "environments.prod.description"),
    ],
)
def test_a_value_is_refused_and_not_repeated(place: str, field: str, token: str, folder: Path) -> None:
    spec = write(folder, **{place: token})
    with pytest.raises(SpecError) as error:
        load_spec(spec, "dev", environments=folder / "environments")
    (problem,) = (problem for problem in error.value.problems if problem.rule == "SEA113")
    assert (problem.field, problem.message) == (field, "looks like a credential in plain text")
    assert problem.hint == "revoke it, store a new one in Secrets Manager and name that in model.hub_token_secret"
    assert_hidden(str(error.value), token)


def test_a_name_of_a_field_is_refused_and_cut(folder: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_spec(write(folder, option=HUB), "dev", environments=folder / "environments")
    assert [problem.field for problem in error.value.problems] == ["serving.overrides.extra.hf_…"]
    assert_hidden(str(error.value), HUB)


def test_a_secret_access_key_is_known_by_its_name(folder: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_spec(
            write(folder, option="aws_secret_access_key", value=AWS_KEY), "dev", environments=folder / "environments"
        )
    assert [problem.rule for problem in error.value.problems] == ["SEA113"]
    assert_hidden(str(error.value), AWS_KEY)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("api_key", "sk-proj-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6"),
        ("x", "nvapi-" + "aB3dE5fG7hJ9kL1mN2pQ4rS6"),
        ("x", "glpat-" + "aB3dE5fG7hJ9kL1mN2pQ"),
        ("x", "xoxb-" + "123456789012-aB3dE5fG7hJ9"),
        ("x", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmN"),
        ("session_token", "FwoGZXIvYXdz" + "EBYaDNKdyZLr4KcVaB3dE5fG7hJ9"),
        ("hf_token", "swordfish"),
        ("password", "hunter2"),
        ("password", "12345678"),
        ("proxy", "https://user:hunter2@proxy:8080"),
        ("secret_key", AWS_KEY),
        ("kwargs", '\'{"password": "swordfish"}\''),
        ("arguments", '\'["--api-key", "aB3dE5fG7h"]\''),
        ("download", "https://b.s3.amazonaws.com/k?X-Amz-Signature=" + "a1" * 32),
    ],
)
def test_every_kind_is_refused_in_the_options_of_the_engine(option: str, value: str, folder: Path) -> None:
    with pytest.raises(SpecError) as error:
        load_spec(write(folder, option=option, value=value), "dev", environments=folder / "environments")
    assert [(problem.rule, problem.field) for problem in error.value.problems] == [
        ("SEA113", f"serving.overrides.extra.{option}")
    ]
    assert value.strip("'") not in str(error.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [("hf_token", "$HF_TOKEN"), ("api_key", "'{{token}}'"), ("pad_token", "</s>"), ("api_key", "EMPTY")],
)
def test_a_reference_and_a_word_of_models_are_read(option: str, value: str, folder: Path) -> None:
    spec = write(folder, option=option, value=value)
    assert option in load_spec(spec, "dev", environments=folder / "environments").endpoint.serving.overrides.extra


def test_a_secret_that_only_its_name_tells_is_not_repeated_by_another_problem(folder: Path) -> None:
    spec = write(folder)
    spec.write_text(f'{spec.read_text()}scaling: {{min_copies: {{password: 1}}}}\npassword: ["swordfish"]\n')
    with pytest.raises(SpecError) as error:
        load_spec(spec, "dev", environments=folder / "environments")
    assert "password: SEA113" not in str(error.value).partition("swordfish")[2]
    assert "swordfish" not in str(error.value)


def test_an_option_in_a_list_is_named_by_the_one_before_it(folder: Path) -> None:
    spec = write(folder, value="[--api-key, swordfish]")
    with pytest.raises(SpecError) as error:
        load_spec(spec, "dev", environments=folder / "environments")
    assert "SEA113" in [problem.rule for problem in error.value.problems]
    assert "swordfish" not in str(error.value)


@pytest.mark.parametrize("token", TOKENS)
def test_an_environment_is_read_alike(token: str, folder: Path) -> None:
    environment = folder / "environments" / "dev.yaml"
    environment.write_text(f"name: dev\nregion: us-east-1\ntags: {{owner: {token}}}\n")
    with pytest.raises(SpecError) as error:
        load_spec(write(folder), "dev", environments=folder / "environments")
    assert [(problem.field, problem.rule) for problem in error.value.problems] == [("tags.owner", "SEA113")]
    assert_hidden(str(error.value), token)


@pytest.mark.parametrize("text", [f"model: *{HUB}", f"model: {{{HUB}", f"{HUB}: [", f"? {HUB}\n? {HUB}"])
def test_broken_text_is_told_without_its_credential(text: str, folder: Path) -> None:
    spec = folder / "endpoints" / "chat.yaml"
    spec.write_text(text)
    with pytest.raises(SpecError) as error:
        load_spec(spec, "dev", environments=folder / "environments")
    assert_hidden(str(error.value), HUB)


def test_synthesis_refuses_it_too(folder: Path) -> None:
    write(folder, description=HUB)
    with pytest.raises(SpecError) as error:
        load_deployments(folder / "endpoints", folder / "environments", "dev")
    assert_hidden(str(error.value), HUB)


class TestCommands:
    """What a command prints and writes, with the token in the spec, and with the user's own in the environment."""

    @pytest.mark.parametrize(
        "command",
        [
            ["validate", "endpoints/chat.yaml"],
            ["plan", "endpoints/chat.yaml", "-e", "dev", "--format", "json"],
            ["plan", "endpoints/chat.yaml", "-e", "dev", "--write"],
            ["render", "endpoints/chat.yaml", "-e", "dev", "-o", "out"],
        ],
    )
    def test_refuse_a_planted_token_and_write_nothing(
        self, command: list[str], folder: Path, command_line: CommandLine
    ) -> None:
        write(folder, description=HUB)
        before = sorted(folder.rglob("*"))
        done = command_line.run(*command, folder=folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert "SEA113" in done.stderr
        assert_hidden(done.stderr, HUB)
        assert sorted(folder.rglob("*")) == before

    def test_do_not_copy_the_users_own_token(self, folder: Path, command_line: CommandLine) -> None:
        for name in ("endpoints", "environments"):
            shutil.copytree(REPOSITORY / name, folder / name, dirs_exist_ok=True)
        for lock in (folder / "endpoints").glob("*.lock.json"):
            lock.unlink()
        command = ("render", "endpoints/llama-2-7b-chat.yaml", "-e", "dev", "-o", "out")
        tokens = {"HF_TOKEN": HUB, "HUGGING_FACE_HUB_TOKEN": HUB}
        done = command_line.run(*command, folder=folder, variables=tokens)
        assert done.returncode == 0, done.stderr
        assert_hidden(done.stdout + done.stderr, HUB)
        for file in (file for file in folder.rglob("*") if file.is_file()):
            assert_hidden(file.read_text(encoding="utf-8", errors="replace"), HUB)


def test_nothing_is_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(SpecError):
        load_spec(write(folder, description=HUB), "dev", environments=folder / "environments")
    assert_hidden(caplog.text, HUB)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {HUB}.", "token hf_…."),
        (f"MY_{AWS_ID}", "MY_AKI…"),
        (f"https://user:{GITHUB}@example.org", "https://user:ghp…@example.org"),
        (f"{PEM}-----END RSA PRIVATE KEY-----", "---…-----END RSA PRIVATE KEY-----"),
        (f'"SecretAccessKey": "{AWS_KEY}"', '"SecretAccessKey": "wJa…"'),
        (f"AWS_SECRET_ACCESS_KEY={AWS_KEY}", "AWS_SECRET_ACCESS_KEY=wJa…"),
    ],
)
def test_of_a_credential_three_characters_are_shown(text: str, shown: str) -> None:
    assert holds_credential(text)
    assert redacted(text) == shown
    assert not holds_credential(shown)


@pytest.mark.parametrize(
    "text",
    [
        "hf_transfer",
        "my/hf_token",
        "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-token-AbCdEf",
        "meta-llama/Llama-2-7b-chat-hf",
        "b1946ac92492d2347c6235b4d2611184e1a5b3c4",  # a commit
        "AKIALESS",
        AWS_KEY,  # forty characters say nothing without their name
        "Basic abcdef\N{KELVIN SIGN}ghi",  # a K to a pattern without case, and no Base64
    ],
)
def test_what_is_no_credential_is_left_alone(text: str) -> None:
    assert not holds_credential(text)
    assert redacted(text) == text


MIXED = "a1b2c3d4e5f6g7h8i9j0"


@pytest.mark.parametrize("name", ["token", "auth", "secret", "pat", "credential"])
def test_behind_a_name_that_may_say_it_sixteen_mixed_characters_are_a_credential(name: str) -> None:
    assert not holds_credential(MIXED[:15], name=name)
    assert holds_credential(MIXED[:16], name=name)
    assert MIXED[3:16] not in redacted(f"{name}={MIXED[:16]}")


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("-----BEGIN PRIVATE KEY-----secret=abc123XYZ789abcd:&", (0, 51)),  # the second ends later
        ("secret=https://u:abc123XYZ789abcd@h/@h/", (7, 39)),  # the second ends earlier
        (f"token={HUB}", (6, 6 + len(HUB))),
    ],
)
def test_credentials_that_overlap_are_one_from_the_first_beginning_to_the_last_end(
    text: str, span: tuple[int, int]
) -> None:
    (one,) = credentials(text)
    assert (one.start, one.end) == span


def test_credentials_that_touch_are_told_apart() -> None:
    assert len(credentials(f"{HUB} {GITHUB}")) == 2


def test_a_key_near_one_of_several_ids_is_found() -> None:
    ids = [f"{AWS_ID[:-2]}{number:02}" for number in range(10, 30)]
    text = f"{' '.join(ids)} {AWS_KEY} {'- ' * 200} {AWS_KEY} {'- ' * 50}{ids[0]}"
    assert AWS_KEY[SHOWN:] not in redacted(text)


@given(st.text(), st.sampled_from(TOKENS), st.text(alphabet=" \n\"'=:,/;", min_size=1))
def test_whatever_stands_around_it_nothing_of_it_is_left(around: str, token: str, edge: str) -> None:
    assert token[SHOWN:] not in redacted(f"{around}{edge}{token}{edge}{around}")
