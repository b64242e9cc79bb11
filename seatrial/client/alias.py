"""An endpoint by its alias: the name stays when another endpoint takes its place."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol, TypeVar

from seatrial.bench.decode.failure import Failure, shorten
from seatrial.client.transport import InvocationError, Target, failures_of
from seatrial.deployment.alias import AliasValue, alias_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial.payload.schema import Schema

Answer = TypeVar("Answer")
CACHED_S = 30.0


class ParameterStore(Protocol):
    """The one call of AWS Systems Manager that is needed."""

    def get_parameter(self, *, Name: str) -> Mapping[str, Mapping[str, object]]:  # noqa: N803 (the service's word)
        """Return a parameter."""


class Alias:
    """An endpoint by environment and name, wherever a `Target` is taken; threads may share it.

    What it names is asked again after 30 s, and at once when the endpoint or its component is not there any more: the
    request is then sent once more, to the one that took its place. While the parameter can't be read, the last answer
    holds.

    Args:
        ssm: `boto3.client("ssm")`; the caller needs `ssm:GetParameter` on the parameter (`LlmEndpoint.grant_invoke`).
        environment: The environment's name.
        name: The name in the endpoint's spec.
        schema: The schema to speak; the container behind the endpoint decides which ones it understands.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        ssm: ParameterStore,
        environment: str,
        name: str,
        schema: Schema,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.schema = schema
        self.parameter_name = alias_name(environment, name)
        self._ssm = ssm
        self._clock = clock
        self._lock = threading.Lock()
        self._target: Target | None = None
        self._read_at_s = 0.0

    @property
    def where(self) -> str:
        """The alias's name, for errors."""
        return self.parameter_name

    def target(self) -> Target:
        """Return what the alias names, read within the last 30 s where it can be read.

        Raises:
            InvocationError: SEA372, it was never read, and can't be.
        """
        with self._lock:
            if self._target is None:
                return self._read()
            if self._clock() - self._read_at_s < CACHED_S:
                return self._target
            try:
                return self._read()
            except InvocationError:
                return self._target

    def moved(self, gone: Target) -> Target | None:
        """Return what took the place of a target that is not there any more.

        `None` when the alias still names it, or can't be read.
        """
        with self._lock:
            if self._target == gone:
                try:
                    self._read()
                except InvocationError:
                    return None
            return self._target if self._target != gone else None

    def _read(self) -> Target:
        with failures_of(self.where):
            value = self._ssm.get_parameter(Name=self.parameter_name)["Parameter"].get("Value")
        try:
            named = AliasValue.from_json(str(value))
        except ValueError as error:
            raise InvocationError.because(Failure("protocol", shorten(str(error))), where=self.where) from error
        self._target = Target(named.endpoint_name, self.schema, inference_component=named.inference_component_name)
        self._read_at_s = self._clock()
        return self._target


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
        moved = destination.moved(target) if _is_gone(error.failure) else None
        if moved is None:
            raise
    return send(moved)


def _is_gone(failure: Failure) -> bool:
    return failure.error == "validation" and "not found" in failure.detail.lower()
