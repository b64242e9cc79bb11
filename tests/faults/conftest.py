"""An embedded AWS with the local engine, a fault proxy before its runtime API, and trials through it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial_laptop import lifecycle
from tests.environment import environment
from tests.faults.cloud import Cloud, deploy
from tests.faults.proxy import Proxy
from tests.faults.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    state_dir = tmp_path_factory.mktemp("aws")
    try:
        with environment({"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}):
            local = lifecycle.start_embedded_aws(state_dir=state_dir)
        sagemaker = boto3.client(
            "sagemaker",
            endpoint_url=local.endpoint_url,
            region_name=local.region,
            aws_access_key_id=local.access_key_id,
            aws_secret_access_key=local.secret_access_key,
        )
        found = Cloud(local, state_dir, sagemaker)
        deploy(found)
        yield found
    finally:
        lifecycle.stop_embedded_aws(state_dir)


@pytest.fixture(scope="session")
def proxy_process(cloud: Cloud) -> Iterator[Proxy]:
    upstream = cloud.local.endpoint_url.rpartition(":")[2]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fault_proxy", upstream],
        cwd=ROOT,
        env=lifecycle.child_variables(cloud.local),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Proxy(process)


@pytest.fixture
def proxy(proxy_process: Proxy) -> Iterator[Proxy]:
    """Return the proxy, which does no harm until it is told to."""
    yield proxy_process
    proxy_process.obey()


@pytest.fixture
def trials(proxy: Proxy, cloud: Cloud) -> Trials:
    return Trials(proxy, cloud)
