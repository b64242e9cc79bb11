"""Which code reads a container's options: the image's own, the user's handler, or an engine of the Java side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Handler = Literal["own", "user", "java"]

OWN_HANDLERS = "djl_python"
# Engines of DJL without a Python process (deepjavalibrary/djl-serving@7e13b081 serving/docs/modes.md and
# serving/docs/lmi/user_guides/embedding-user-guide.md): their options go to the Java translator.
JAVA_ENGINES = frozenset(
    ["rust", "onnxruntime", "pytorch", "tensorflow", "tensorrt", "mxnet", "xgboost", "lightgbm", "llama"]
)


def handler_of(written: Mapping[str, str], *, has_model_py: bool) -> Handler:
    """Return who reads the options of an LMI configuration, so that another's names and values are not judged.

    Args:
        written: Options by name, of `engine` without `option.` as well.
        has_model_py: A `model.py` lies beside the file: PyModel.java takes it for the handler.
    """
    if written.get("engine", "").strip().lower() in JAVA_ENGINES:
        return "java"
    entry_point = written.get("entryPoint", "")
    if has_model_py or (entry_point and not entry_point.startswith(OWN_HANDLERS)):
        return "user"
    return "own"
