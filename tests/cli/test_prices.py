"""`seatrial prices refresh` against a server that answers as AWS does."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.account.test_prices import product

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Seatrial


@contextmanager
def aws(prices: dict[str, dict[str, str]], *, plans: bool) -> Iterator[dict[str, str]]:
    """Serve prices by region and type; a region that is not there is refused. Yields the variables to ask it."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/DescribeSavingsPlansOfferingRates":
                offering = {"durationSeconds": 31_536_000}
                row = {"usageType": "Host:ml.g5.xlarge", "rate": "0.9", "savingsPlanOffering": offering}
                self._send({"searchResults": [row]} if plans else None)
                return
            listed = prices.get(next(one["Value"] for one in asked["Filters"] if one["Field"] == "regionCode"))
            products = [product(f"Host:{name}", price) for name, price in (listed or {}).items()]
            self._send(None if listed is None else {"PriceList": products})

        def _send(self, document: dict[str, object] | None) -> None:
            body = {"__type": "AccessDeniedException", "message": "no"} if document is None else document
            self.send_response(200 if document is not None else 400)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        yield {
            "AWS_ENDPOINT_URL_PRICING": place,
            "AWS_ENDPOINT_URL_SAVINGSPLANS": place,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
        server.shutdown()


def test_the_regions_of_the_environments_are_read_and_the_file_is_the_same_again(
    seatrial: Seatrial, project: Path
) -> None:
    file = project / "environments" / "prices.yaml"
    with aws({"us-east-1": {"ml.g5.xlarge": "1.408", "ml.g5.2xlarge": "1.515"}}, plans=True) as variables:
        first = seatrial("prices", "refresh", env=variables)
        text = file.read_text(encoding="utf-8")
        again = seatrial("prices", "refresh", env=variables)
    document = yaml.safe_load(text)

    assert (first.returncode, again.returncode, file.read_text(encoding="utf-8")) == (0, 0, text)
    assert document["regions"]["us-east-1"]["usd_per_hour"] == {"ml.g5.2xlarge": 1.515, "ml.g5.xlarge": 1.408}
    assert document["regions"]["us-east-1"]["savings_plan_usd_per_hour"] == {"ml.g5.xlarge": 0.9}
    assert first.stdout == "us-east-1: 2 prices of 2026-10-01, 1 Savings Plans rates\n"


def test_what_fails_is_told_and_keeps_its_prices(seatrial: Seatrial, project: Path) -> None:
    file = project / "team" / "prices.yaml"
    file.parent.mkdir()
    options = ("--region", "us-east-1", "--region", "eu-west-1", "--output", "team/prices.yaml")
    with aws({"us-east-1": {"ml.g5.xlarge": "2"}, "eu-west-1": {"ml.g5.xlarge": "3"}}, plans=True) as variables:
        seatrial("prices", "refresh", *options, env=variables)
    before = yaml.safe_load(file.read_text(encoding="utf-8"))
    before["savings_plan_discount"] = 0.25
    file.write_text(yaml.safe_dump(before), encoding="utf-8")
    with aws({"us-east-1": {"ml.g5.2xlarge": "4", "ml.g5.xlarge": "2.5"}}, plans=False) as variables:
        partly = seatrial("prices", "refresh", *options, env=variables)
    after = yaml.safe_load(file.read_text(encoding="utf-8"))

    assert partly.returncode == 1
    assert "eu-west-1: not read, its old prices are kept\n" in partly.stderr
    assert "us-east-1: written without Savings Plans rates\n" in partly.stderr
    assert "; ml.g5.xlarge 2 to 2.5\n" in partly.stdout
    assert after["regions"]["eu-west-1"] == before["regions"]["eu-west-1"]
    assert after["savings_plan_discount"] == 0.25
    assert "savings_plan_usd_per_hour" not in after["regions"]["us-east-1"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("--region", "moon"), "--region"), (("--environments", "nowhere"), "--region")],
)
def test_what_can_not_be_asked_is_refused(arguments: tuple[str, ...], named: str, seatrial: Seatrial) -> None:
    refused = seatrial("prices", "refresh", *arguments)

    assert refused.returncode == 2
    assert named in refused.stderr


def test_a_broken_prices_file_is_left_alone(seatrial: Seatrial, project: Path) -> None:
    file = project / "environments" / "prices.yaml"
    file.write_text("schema_version: '9'\n", encoding="utf-8")
    with aws({}, plans=False) as variables:
        refused = seatrial("prices", "refresh", env=variables)

    assert refused.returncode == 2
    assert "SEA107" in refused.stderr
    assert file.read_text(encoding="utf-8") == "schema_version: '9'\n"
