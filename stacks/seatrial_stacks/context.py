"""Values that people give to `cdk synth`: with `-c`, in cdk.json, or in CDK_CONTEXT_JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from aws_cdk import App


def context_text(app: App, name: str) -> str | None:
    """Return a context value; `None` when there is none.

    Raises:
        SpecError: SEA404 when the value is no text.
    """
    value: object = app.node.try_get_context(name)
    if value is None or isinstance(value, str):
        return value
    message = f"the context value `{name}` is {value!r}, not a string"
    raise SpecError.of("SEA404", message, hint=f"give it as `-c {name}=TEXT`")
