"""The arithmetic of the load clients' benchmark; what it measures is printed, not asserted."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.load_client.measure import TOKENS, Answer, Usage, middle_rate, tell
from benchmarks.load_client.neutral_server import PACKAGES, neutral_server, stats
from benchmarks.load_client.run import row, start_cpu_s
from benchmarks.load_client.tools import missing_tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def test_errors_are_the_clients_times_minus_the_servers(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked at 1.0 s, received at 1.001 s, first token written 50 ms later and seen 2 ms after that; gaps 20 ms."""
    pieces = [
        (1.053 + 0.020 * n, b'data: {"r": 1001000000,"t": %d}' % (1_051_000_000 + 20_000_000 * n))
        for n in range(TOKENS)
    ]
    pieces[1] = (pieces[1][0] + 0.005, pieces[1][1])
    tell([Answer(1.0, pieces)], Usage(0.0, 0.5, 0.0), Usage(2.0, 0.756, 0.5), extra=1)
    told = json.loads(capsys.readouterr().out)
    assert told["ttft_error_ms"] == pytest.approx([3.0, 3.0])
    assert told["itl_error_ms"] == pytest.approx([0.0, 5.0], abs=1e-6)
    assert told["cpu_s_per_1k"] == pytest.approx(4.0)
    assert (told["run_delay"], told["tokens"], told["extra"]) == (0.25, 64, 1)


def test_an_answer_that_lacks_a_token_ends_the_run() -> None:
    with pytest.raises(SystemExit, match="an answer has 1 tokens instead of 64"):
        tell([Answer(1.0, [(1.0, b'"r": 1,"t": 2')])], Usage(0.0, 0.0, 0.0), Usage(1.0, 0.0, 0.0))


def test_the_middle_half_counts() -> None:
    assert middle_rate([0.0, *(4.0 + n / 100 for n in range(200)), 8.0]) == pytest.approx(50.0)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("benchmarks.load_client.tools.ENVIRONMENTS", tmp_path)
    first, *others = missing_tools()
    assert first == "guidellm: skipped, not installed (sh benchmarks/load_client/install.sh guidellm)"
    assert all(re.fullmatch(r"[a-z, -]+: skipped, .*", line) for line in others)


CAN_BUILD = shutil.which("gcc") and shutil.which("openssl") and Path("/usr/include/openssl/ssl.h").exists()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Build and start the neutral server."""
    with neutral_server(tmp_path_factory.mktemp("server")) as where:
        yield {**os.environ, **where, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.skipif(not CAN_BUILD, reason=f"the neutral server can't be built: {PACKAGES}")
@pytest.mark.parametrize(("module", "workers"), [("ours", 1), ("ours", 2), ("boto3_threads", 1), ("aiohttp_tasks", 1)])
def test_each_client_takes_in_every_token(server: Mapping[str, str], module: str, workers: int) -> None:
    streams = 4
    measured = row(module, module, streams, server, workers=workers, rounds=1)
    assert measured.streams == streams
    assert measured.tok_s > 0
    assert measured.all_in_s_per_1k > 0
    assert stats(server)["tokens"] == streams * TOKENS


def test_the_start_of_the_client_is_measured() -> None:
    assert start_cpu_s(1) > 0
