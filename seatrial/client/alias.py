"""An endpoint by its alias: the name stays when another endpoint takes its place."""

from __future__ import annotations

import random
import threading
import time
from copy import copy
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from seatrial.client.transport import InvocationError, Target, failures_of
from seatrial.deployment.alias import AliasValue, alias_name
from seatrial.deployment.traffic import fraction_of
from seatrial_load.client.connection import other_runtime_url
from seatrial_load.decode.failure import Failure, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_ssm import SSMClient

    from seatrial_load.payload.schema import Schema

Answer = TypeVar("Answer")
CACHED_S = 30.0


class Alias:
    """An endpoint by environment and name, wherever a `Target` is taken; threads may share it.

    What it names is read again after 30 s, and at once when the endpoint or its component is not there any more: the
    request is then sent once more, to the one that took its place. While the parameter can't be read, the last answer
    holds.

    Where the alias has weights, each request goes to a component by them, at random; those of a session
    (`of_session`) all go to the same one while the weights stay.

    Args:
        ssm: `boto3.client("ssm")`; the caller needs `ssm:GetParameter` on the parameter (`LlmEndpoint.grant_invoke`).
        clock: Seconds that only grow.
        fraction: A number from 0 to below 1 for each request, by which a component is chosen.
    """

    def __init__(
        self,
        ssm: SSMClient,
        environment: str,
        name: str,
        schema: Schema,
        *,
        clock: Callable[[], float] = time.monotonic,
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self.schema = schema
        self._parameter = _Parameter(ssm, alias_name(environment, name), clock)
        self._fraction = fraction

    @property
    def parameter_name(self) -> str:
        """Name of the SSM parameter."""
        return self._parameter.name

    def of_session(self, session_id: str) -> Alias:
        """Return the alias for the requests of one session, which shares what was read.

        Args:
            session_id: Names the session; equal IDs go to the same component while the weights stay.
        """
        session, fraction = copy(self), fraction_of(session_id)
        session._fraction = lambda: fraction  # noqa: SLF001 (of this class)
        return session

    @property
    def where(self) -> str:
        """The alias's name, for errors."""
        return self.parameter_name

    def target(self) -> Target:
        """Return what the alias names, read within the last 30 s where it can be read.

        Raises:
            InvocationError: SEA372, it was never read, and can't be.
        """
        return self._chosen(self._parameter.value())

    def openai_base_url(self) -> str:
        """Return the base URL for OpenAI clients, of the endpoint's own component: they are not split.

        Boto3's variables of the runtime's URL (`AWS_ENDPOINT_URL`) lead it elsewhere, as they do boto3.

        Raises:
            InvocationError: SEA372, the alias can't be read, or has no such URL.
        """
        if base_url := self._parameter.value().openai_base_url:
            parts = urlsplit(base_url)
            return f"{other_runtime_url() or f'{parts.scheme}://{parts.netloc}'}{parts.path}"
        message = "the alias has no openai_base_url: deploy the endpoint again; an asynchronous one has none"
        raise InvocationError.because(Failure("validation", message), where=self.parameter_name)

    def moved(self, gone: Target) -> Target | None:
        """Return what took the place of a target that is not there any more.

        `None` when the alias still names it, or can't be read.
        """
        value = self._parameter.changed_from(gone.endpoint_name, gone.inference_component)
        return None if value is None else self._chosen(value)

    def _chosen(self, value: AliasValue) -> Target:
        component = value.component_at(self._fraction())
        return Target(value.endpoint_name, self.schema, inference_component=component)


class _Parameter:
    """The parameter of an alias, read at most every 30 s; threads and sessions share it."""

    def __init__(self, ssm: SSMClient, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self._ssm = ssm
        self._clock = clock
        self._lock = threading.Lock()
        self._value: AliasValue | None = None
        self._read_at_s = 0.0

    def value(self) -> AliasValue:
        with self._lock:
            if self._value is None:
                return self._read()
            if self._clock() - self._read_at_s < CACHED_S:
                return self._value
            try:
                return self._read()
            except InvocationError:
                return self._value

    def changed_from(self, endpoint_name: str, component: str | None) -> AliasValue | None:
        """Return the value once it does not name a component any more; `None` while it does, or can't be read."""
        with self._lock:
            if self._value is not None and _names(self._value, endpoint_name, component):
                try:
                    self._read()
                except InvocationError:
                    return None
            return None if self._value is None or _names(self._value, endpoint_name, component) else self._value

    def _read(self) -> AliasValue:
        with failures_of(self.name):
            text = self._ssm.get_parameter(Name=self.name)["Parameter"].get("Value")
        try:
            self._value = AliasValue.from_json(str(text))
        except ValueError as error:
            raise InvocationError.because(Failure("protocol", shorten(str(error))), where=self.name) from error
        self._read_at_s = self._clock()
        return self._value


def _names(value: AliasValue, endpoint_name: str, component: str | None) -> bool:
    if value.endpoint_name != endpoint_name:
        return False
    return value.weights.get(component or "", 0) > 0 if value.weights else value.inference_component_name == component


def at_target(destination: Target | Alias, send: Callable[[Target], Answer]) -> Answer:
    """Send a request to a target, or to what an alias names; once more where the alias has moved meanwhile.

    Raises:
        InvocationError: SEA372, the request failed.
    """
    if isinstance(destination, Target):
        return send(destination)
    target = destination.target()
    try:
        return send(target)
    except InvocationError as error:
        is_gone = error.failure.error == "validation" and "not found" in error.failure.detail.lower()
        moved = destination.moved(target) if is_gone else None
        if moved is None:
            raise
    return send(moved)
