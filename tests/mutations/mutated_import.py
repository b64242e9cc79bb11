"""A plugin of pytest that imports one module with a wrong line, in this process alone; no file is changed.

The variable `SEATRIAL_MUTATION` is the mutation, as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import TYPE_CHECKING, Final

from tests.mutations.mutations import ROOT, Mutation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

VARIABLE: Final = "SEATRIAL_MUTATION"
MOST_BYTES: Final = 6 * 1024**3
"""A mutant may never end, and fill the memory meanwhile."""


class _MutatedLoader(SourceFileLoader):
    def __init__(self, mutation: Mutation) -> None:
        super().__init__(mutation.module, str(ROOT / mutation.file))
        self._mutation = mutation

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        text = self._mutation.applied(self.get_data(path).decode("utf-8"))
        return compile(text, path, "exec", dont_inherit=True)


class MutatedImport(MetaPathFinder):
    """Finds the one module of a mutation."""

    def __init__(self, mutation: Mutation) -> None:
        self._mutation = mutation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module with the wrong line; `None` for all others."""
        if fullname != self._mutation.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None:
            spec.loader = _MutatedLoader(self._mutation)
        return spec


if VARIABLE in os.environ:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    sys.meta_path.insert(0, MutatedImport(Mutation(**json.loads(os.environ[VARIABLE]))))
