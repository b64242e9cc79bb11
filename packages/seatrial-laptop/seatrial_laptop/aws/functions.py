"""Lambda functions as AWS runs them: by AWS's date, and again where an asynchronous call failed.

MiniStack calls a function once where EventBridge, SNS or CloudFormation do; Lambda calls it twice more. Done through
names that are not MiniStack's interface; `packages/seatrial-laptop/tests/laptop` holds the contract on them.

`function_modules/sitecustomize.py` reads AWS's date, and sleeps by it. The seconds that were skipped are in a file that
every function maps: they change only while no function runs. A function that sleeps reports it, with a key, on a
loopback port; meanwhile time may be skipped.
"""

from __future__ import annotations

import contextvars
import json
import mmap
import os
import secrets
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Listener
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ministack.core import lambda_runtime
from ministack.services import eventbridge, lambda_svc, sns, stepfunctions
from ministack.services.cloudformation import custom_resource

import seatrial_laptop
from seatrial_laptop.aws.json_document import Document, child, text_member, whole
from seatrial_laptop.aws.ministack import replace, wrapper
from seatrial_laptop.loopback import HOST

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from seatrial_laptop.aws.clock import VirtualClock, WaitingClock
    from seatrial_laptop.aws.faults import ControlSettings, Faults


RETRIES: Final = 2
"""How often a function is called again after it failed, unless MaximumRetryAttempts says so (Lambda developer guide,
asynchronous invocation, error handling)."""
RETRY_S: Final = 60.0
"""Virtual seconds before the first call again; before the second twice as many (likewise)."""
LONGEST_AGE_S: Final = 21_600
"""MaximumEventAgeInSeconds, when a function doesn't say."""
LONGEST_THROTTLE_S: Final = 300.0
"""Virtual seconds between two calls of a function that is throttled, at most; they begin with one (likewise)."""
MODULES: Final = Path(seatrial_laptop.__path__[0]) / "function_modules"

_is_asynchronous: Final[contextvars.ContextVar[bool]] = contextvars.ContextVar("_is_asynchronous", default=False)
"""Whether whoever calls a function in this context doesn't wait for its answer."""

CLOCK_VARIABLE: Final = "SEATRIAL_LAPTOP_CLOCK"
"""The variable by which a function finds it: the file, the port and the key."""
SECONDS: Final = struct.Struct("d")
LOOK_S: Final = 1.0
"""Seconds of AWS's date between two looks whether the function that sleeps is still there."""


def run_functions_as_aws(clock: VirtualClock, faults: Faults, folder: Path) -> None:
    """Let functions and AWS Step Functions go by AWS's date, and call a function again that failed."""
    os.environ[CLOCK_VARIABLE] = serve_function_clock(clock, folder)
    faults.tell_changes(PythonPath().follow)
    replace("_scaled_sleep", clock.wait_aws, stepfunctions)

    @wrapper("_execute_function_dispatch", lambda_svc)
    def execute(theirs: Callable[..., object], *arguments: object) -> object:
        with clock.function_runs():
            return theirs(*arguments)

    _call_again(clock)


@dataclass(frozen=True, slots=True)
class AsynchronousCalls:
    """Calls of functions whose result is not waited for.

    Attributes:
        call: Calls a function with an event and returns how it went, as MiniStack reports it.
    """

    clock: WaitingClock
    call: Callable[[Document, object], Document]

    def begin(self, function: Document, event: object) -> None:
        """Call a function, and again when it fails; return at once."""
        # The account and the Region of the request are in the context.
        work = contextvars.copy_context()
        threading.Thread(target=work.run, args=(self.make, function, event), name="call", daemon=True).start()

    def make(self, function: Document, event: object) -> None:
        """Call a function until it succeeds or was called often enough; then notify the destination of failures."""
        config = _invoke_config(function)
        retries = whole(config, "MaximumRetryAttempts", RETRIES)
        ends_s = self.clock.now_s() + whole(config, "MaximumEventAgeInSeconds", LONGEST_AGE_S)
        failures, throttle_s = 0, 1.0
        while True:
            result = self.call(function, event)
            if not result.get("error"):
                return
            # A throttled call is no failure: it is repeated until the event is too old.
            if result.get("throttle"):
                wait_s, throttle_s = throttle_s, min(2 * throttle_s, LONGEST_THROTTLE_S)
            else:
                failures += 1
                wait_s = RETRY_S * failures
            if failures > retries or self.clock.now_s() + wait_s > ends_s:
                described = child(function, "config")
                destination = child(child(_invoke_config(function), "DestinationConfig"), "OnFailure")
                arn = text_member(destination, "Destination") or text_member(
                    child(described, "DeadLetterConfig"), "TargetArn"
                )
                if arn:
                    lambda_svc._route_async_failure(arn, text_member(described, "FunctionName"), event, result)  # noqa: SLF001 (the contract)
                return
            self.clock.wait(wait_s)


def _invoke_config(function: Document) -> Document:
    """Return the EventInvokeConfig of a function; MiniStack keeps it as one or by qualifier."""
    kept = function.get("event_invoke_config") or child(function, "event_invoke_configs").get("$LATEST")
    return dict(kept) if isinstance(kept, dict) else {}


def _call_again(clock: VirtualClock) -> None:
    """Make those calls asynchronous that are so on AWS, and let them be repeated."""
    at_once = lambda_svc._execute_function_with_config_scope  # noqa: SLF001 (the contract)
    calls = AsynchronousCalls(clock, at_once)

    def execute(function: Document, event: object) -> object:
        if not _is_asynchronous.get():
            return at_once(function, event)
        calls.begin(function, event)
        return {}

    def dispatch(arn: str, payload: str) -> None:
        function, config, _ = lambda_svc._get_func_record_for_ref(arn)  # noqa: SLF001 (the contract)
        if function and config:
            try:
                event: object = json.loads(payload)
            except ValueError:
                event = {"body": payload}
            calls.begin(lambda_svc._execution_record_for_config(function, config), event)  # noqa: SLF001 (the contract)

    replace("_execute_function_with_config_scope", execute, lambda_svc)
    lambda_svc.invoke_async_with_retry = calls.begin
    replace("_dispatch_to_lambda", dispatch, eventbridge)
    wrapper("invoke_custom_resource", custom_resource)(_asynchronous)
    wrapper("_deliver_to_lambda", sns)(_asynchronous)


def _asynchronous(theirs: Callable[..., object], *arguments: object, **named: object) -> object:
    token = _is_asynchronous.set(True)
    try:
        return theirs(*arguments, **named)
    finally:
        _is_asynchronous.reset(token)


class PythonPath:
    """What Python functions find before the installed modules."""

    def __init__(self) -> None:
        self._first: str | None = None
        self._set()

    def follow(self, settings: ControlSettings) -> None:
        """Go by the setting: functions start again when it changes, and those that run are ended."""
        if settings.function_python_path != self._first:
            self._first = settings.function_python_path
            self._set()
            lambda_runtime.reset()

    def _set(self) -> None:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [self._first, str(MODULES)]))


def serve_function_clock(clock: VirtualClock, folder: Path) -> str:
    """Tell functions AWS's date until the process ends; return the value of `CLOCK_VARIABLE`."""
    path, key = folder / "clock", secrets.token_bytes(32)
    path.write_bytes(bytes(SECONDS.size))
    with path.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), SECONDS.size)
    clock.tell_skipped(lambda skipped_s: SECONDS.pack_into(shared, 0, skipped_s))
    listener = Listener((HOST, 0), authkey=key)
    threading.Thread(target=_accept, args=(clock, listener), name="function-clock", daemon=True).start()
    return f"{path}|{listener.address[1]}|{key.hex()}"


def _accept(clock: VirtualClock, listener: Listener) -> None:
    while True:
        # A caller without the key ends here, and the next one is awaited.
        with suppress(OSError, EOFError, ValueError):
            connection = listener.accept()
            threading.Thread(target=_sleep, args=(clock, connection), name="function-sleeps", daemon=True).start()


def _sleep(clock: VirtualClock, connection: Connection[object, object]) -> None:
    """Wait as long as a function requests; end when it is gone."""
    with connection, suppress(OSError, EOFError, ValueError, TypeError):
        end_s = clock.aws_date_s() + float(str(connection.recv()))
        with clock.function_sleeps():
            while (left_s := end_s - clock.aws_date_s()) > 0 and not connection.poll():
                clock.wait_aws(min(left_s, LOOK_S))
        connection.send("")
