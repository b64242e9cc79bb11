"""`seatrial recipes` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.conftest import SPECS

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial


def test_json_says_that_it_is_predicted_and_has_every_recipe(seatrial: Seatrial) -> None:
    done = seatrial("recipes", SPECS[1], "-e", "dev", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)

    assert found["predicted"] is True
    assert {"none", "fp8", "fp8+kv_fp8"} <= {row["recipe"] for row in found["recipes"]}
    assert all(row["allowed"] == (row["rule"] == "") for row in found["recipes"])
