"""`seatrial products` as a platform team runs it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import REPOSITORY, files
from tests.sample_product import write_product

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Seatrial

PRODUCT = "products/chat.yaml"
TEMPLATE = "products/chat/versions/1.0.0/lab.template.json"
SOURCE = "products/chat/versions/1.0.0/lab.source.json"
NOT_CHECKED = {"CDK_VALIDATION": "false"}
"""The CDK's own check takes half of a synthesis; tests/stacks/test_vending.py makes it."""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    folder = tmp_path / "team"
    folder.mkdir()
    write_product(folder)
    shutil.copy(REPOSITORY / "cdk.json", folder)
    return folder


def test_a_product_is_checked_planned_published_and_listed(seatrial: Seatrial, team: Path) -> None:
    assert seatrial("products", "validate", "products", folder=team).stdout == f"{PRODUCT}: valid\n"

    unlocked = seatrial("products", "plan", PRODUCT, "--check", folder=team)
    assert (unlocked.returncode, unlocked.stdout.count("SEA401")) == (1, 2)
    early = seatrial("products", "publish", PRODUCT, folder=team)
    assert (early.returncode, early.stderr.count("SEA401")) == (2, 2)
    assert f"seatrial products plan {PRODUCT} --environment lab --write" in early.stderr.replace(f"{team}/", "")

    planned = seatrial("products", "plan", PRODUCT, "--write", folder=team)
    assert planned.returncode == 0, planned.stderr
    assert [f"products/chat/{size}.lock.json: lab" in planned.stderr for size in ("small", "large")] == [True, True]
    again = files(team)
    assert seatrial("products", "plan", PRODUCT, "--check", folder=team).returncode == 0
    assert seatrial("products", "plan", PRODUCT, "--write", folder=team).returncode == 0
    assert files(team) == again, "equal plans give equal bytes"

    missing = seatrial("products", "list", PRODUCT, folder=team)
    assert (missing.returncode, "SEA494" in missing.stderr) == (2, True)
    published = seatrial("products", "publish", PRODUCT, folder=team, env=NOT_CHECKED)
    assert (published.returncode, published.stdout) == (0, f"{TEMPLATE}\n{SOURCE}\n"), published.stderr
    checked = seatrial("products", "publish", PRODUCT, "--check", folder=team)
    assert (checked.returncode, checked.stdout) == (0, f"{PRODUCT}: lab: 1.0.0: published\n")
    template = team / "products/chat/versions/1.0.0/lab.template.json"
    text = template.read_text()
    template.write_text(text.replace('"4711"', '"4712"'))
    edited = seatrial("products", "validate", PRODUCT, folder=team)
    assert (edited.returncode, "SEA498: it is not the template that was published" in edited.stderr) == (2, True)
    template.write_text(text)
    write_product(team, description="Another chat endpoint.")
    changed = seatrial("products", "publish", PRODUCT, "--check", folder=team)
    assert (changed.returncode, changed.stdout) == (1, f"{PRODUCT}: lab: 1.0.0: changed\n")
    tightened: dict[str, object] = {"guard_rails": {"max_copies": 2}}
    write_product(team, lab=tightened, version="1.1.0", sizes={"small": {"scaling": {"max_copies": 2}}})
    forbidden = seatrial("products", "validate", PRODUCT, folder=team)
    assert (forbidden.returncode, forbidden.stdout, forbidden.stderr.count("SEA487")) == (2, "", 1)
    write_product(team, description="Another chat endpoint.")
    assert "SEA495" in seatrial("products", "publish", PRODUCT, folder=team).stderr
    listed = seatrial("products", "list", PRODUCT, folder=team)
    assert listed.stdout == "chat: lab: sizes small, large; versions 1.0.0\n"


def test_a_size_that_breaks_a_guard_rail_is_refused(seatrial: Seatrial, team: Path) -> None:
    write_product(team, sizes={"small": None, "huge": {"scaling": {"max_copies": 5}}})
    done = seatrial("products", "validate", PRODUCT, folder=team)
    assert done.returncode == 2
    assert "sizes.huge.scaling.max_copies: SEA111: max_copies 5 exceeds lab's guard rail 4" in done.stderr
    assert not (team / "products" / "chat").exists()


def test_everybody_as_principal_is_told_and_stops_nothing(seatrial: Seatrial, team: Path) -> None:
    everybody = ["arn:aws:iam:::role/*", "arn:aws:iam:::user/*?", "arn:aws:iam:::role/team-*"]
    write_product(team, principals=everybody)
    done = seatrial("products", "validate", PRODUCT, folder=team)
    assert (done.returncode, done.stdout.count("SEA486"), done.stderr) == (1, 2, "")
    assert f"{PRODUCT}: valid\n" in done.stdout
    assert "principals[0]: SEA486: warning: arn:aws:iam:::role/* is every role of the account" in done.stdout
    assert seatrial("products", "plan", PRODUCT, folder=team).returncode == 0
