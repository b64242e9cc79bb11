"""The variables that keep every child process on the embedded AWS, and away from real accounts and credentials."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from seatrial.local.loopback import HOST

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
FOREIGN: Final = ("AWS_", "CDK_")
"""What a child process must not inherit from the user's shell, such as AWS_PROFILE."""


def variables(port: int) -> dict[str, str]:
    """Return every variable that the CLI, CDK and boto3 need to reach the embedded AWS on a port."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ENDPOINT_URL": f"http://{HOST}:{port}",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": REGION,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }


def child_environment(port: int) -> dict[str, str]:
    """Return this process's environment without AWS_* and CDK_*, with `variables`, and this Python's folder first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, **variables(port), "PATH": search_path()}


def server_environment(port: int, *, verbose: bool = False) -> dict[str, str]:
    """Return the whole environment of the embedded AWS itself, which its Lambda functions inherit."""
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR", "LANG") if name in os.environ}
    ministack = {
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": HOST,
        "BIND_HOST": HOST,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "NODE_PATH": str(Path(__file__).with_name("lambda_modules")),
        "LOG_LEVEL": "INFO" if verbose else "WARNING",
    }
    return {**kept, **variables(port), **ministack, "PATH": search_path()}


def package_root() -> str:
    """Return the folder that holds the package, for the PYTHONPATH of our own processes."""
    return str(Path(__file__).parents[2])


def search_path() -> str:
    """Return PATH with the folder of this Python first: the Node that comes with it is the right one."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
