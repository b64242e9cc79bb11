"""The variables that keep every child process on the embedded AWS, and away from real accounts and credentials.

One list serves all of them: a variable that an SDK or the CDK CLI knows is either set by `variables` or taken away by
`removed`, in a child process (`child_environment`) as in the user's shell (`shell_lines`).
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import seatrial_base
import seatrial_laptop
import seatrial_lint
import seatrial_load
from seatrial_laptop.loopback import HOST
from seatrial_laptop.state import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_laptop.state import LocalAws

ACCOUNT_VARIABLE: Final = "MINISTACK_ACCOUNT_ID"
"""Where MiniStack reads the account of requests that name none by their access key."""
FOREIGN: Final = ("AWS_", "CDK_")
"""Every variable with such a name is set by us or removed: AWS_ENDPOINT_URL_<SERVICE> has many."""
KNOWN: Final = (
    "AWS_ACCOUNT_ID",
    "AWS_ACCOUNT_ID_ENDPOINT_MODE",
    "AWS_AUTH_SCHEME_PREFERENCE",
    "AWS_CA_BUNDLE",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CREDENTIAL_EXPIRATION",
    "AWS_CREDENTIAL_FILE",
    "AWS_CREDENTIAL_SCOPE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ENDPOINT_DISCOVERY_ENABLED",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_S3_FORCE_PATH_STYLE",
    "AWS_S3_USE_ARN_REGION",
    "AWS_SDK_LOAD_CONFIG",
    "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN",
    "AWS_SIGV4A_SIGNING_REGION_SET",
    "AWS_STS_REGIONAL_ENDPOINTS",
    "AWS_USE_DUALSTACK_ENDPOINT",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "CDK_DEBUG",
    "CDK_NEW_BOOTSTRAP",
    "CDK_OUTDIR",
)
"""What leads elsewhere, removed by name too: the printed lines may be run in another shell than ours."""
ENGINE_VARIABLES: Final = ("HOME", "XDG_CACHE_HOME", "SEATRIAL_LOCAL_MODEL")
"""What engines read of the user's environment, and functions don't: the cache, and which random model they make."""
LOOPBACK_NAMES: Final = (HOST, "localhost")
NO_PROXY: Final = ("NO_PROXY", "no_proxy")


def own_account() -> str:
    """Return the account of the embedded AWS that this process is."""
    return os.environ.get(ACCOUNT_VARIABLE, ACCOUNT)


def variables(process: LocalAws) -> dict[str, str]:
    """Return every variable that the CLI, CDK and boto3 need to reach a running embedded AWS."""
    theirs = [host.strip() for name in NO_PROXY for host in os.environ.get(name, "").split(",")]
    hosts = dict.fromkeys([*(host for host in theirs if host), *LOOPBACK_NAMES])
    return {
        "AWS_ACCESS_KEY_ID": process.access_key_id,
        "AWS_SECRET_ACCESS_KEY": process.secret_access_key,
        "AWS_ENDPOINT_URL": process.endpoint_url,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": process.account,
        "CDK_DEFAULT_REGION": REGION,
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        **dict.fromkeys(NO_PROXY, ",".join(hosts)),
    }


def removed(ours: Mapping[str, str]) -> list[str]:
    """Return the names that must not be set with ours: those known, and every other one of AWS and CDK in use."""
    return sorted({*KNOWN, *(name for name in os.environ if name.startswith(FOREIGN))} - ours.keys())


def child_environment(process: LocalAws) -> dict[str, str]:
    """Return this process's environment without `removed`, with `variables`, and this Python's folder first."""
    ours = variables(process)
    gone = removed(ours)
    kept = {name: value for name, value in os.environ.items() if name not in gone}
    return {**kept, **ours, "PATH": search_path()}


def shell_lines(process: LocalAws) -> list[str]:
    """Return the lines that do to the user's shell what `child_environment` does to a child process."""
    ours = variables(process)
    return [
        *(f"unset {name}" for name in removed(ours)),
        *(f"export {name}={shlex.quote(value)}" for name, value in ours.items()),
    ]


def server_environment(port: int, *, account: str = ACCOUNT, verbose: bool = False) -> dict[str, str]:
    """Return the whole environment that the embedded AWS starts with; it hands to functions what is theirs."""
    kept = {name: os.environ[name] for name in (*ENGINE_VARIABLES, "TMPDIR", "LANG") if name in os.environ}
    ministack = {
        "GATEWAY_PORT": str(port),
        ACCOUNT_VARIABLE: account,
        "MINISTACK_HOST": HOST,
        "BIND_HOST": HOST,
        "AUTH": "true",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "NODE_PATH": str(Path(__file__).with_name("lambda_modules")),
        "LOG_LEVEL": "INFO" if verbose else "WARNING",
    }
    return {**kept, **ministack, "PATH": search_path()}


def function_environment(process: LocalAws, *, scratch: Path, verbose: bool = False) -> dict[str, str]:
    """Return the environment of Lambda functions and of the process that runs them: nothing of the user's."""
    ours = {name: value for name, value in variables(process).items() if not name.startswith("CDK_")}
    inherited = server_environment(process.port, account=process.account, verbose=verbose)
    # Functions get nothing of the user's: the variables of the engines lead to the user's cache.
    for name in ENGINE_VARIABLES:
        inherited.pop(name, None)
    return {**inherited, **ours, "HOME": str(scratch / "home"), "TMPDIR": str(scratch)}


def engine_environment() -> dict[str, str]:
    """Return what an engine needs to start, in addition to its container's environment: the user's cache among it."""
    kept = ("PATH", *ENGINE_VARIABLES, "TMPDIR")
    return {**{name: os.environ[name] for name in kept if name in os.environ}, "PYTHONPATH": package_root()}


def package_root() -> str:
    """Return the folders that hold our packages, for the PYTHONPATH of our own processes."""
    packages = (seatrial_laptop, seatrial_lint, seatrial_load, seatrial_base)
    return os.pathsep.join(dict.fromkeys(str(Path(package.__path__[0]).parent) for package in packages))


def search_path() -> str:
    """Return PATH with the folder of this Python first: the Node that comes with it goes before any other."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
