"""Functions that are compiled only as parts of others: typed once, turned into machine code with each of their callers.

Numba optimises every compiled function and emits machine code for it, and does so again inside each of its callers and
theirs; for a tree of helpers below one pass that takes several times as long as the pass itself. A part stops before
that: its callers link its plain intermediate code and optimise the whole once. Numbers and flags that are constant at
a call are ordinary arguments, so that a part is compiled once for all of them.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class Part(CPUDispatcher):
    """A dispatcher for callers in compiled code."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for the types of the arguments, not for their values."""
        plain = tuple(types.unliteral(arg) for arg in args)
        return super().get_call_template(plain, {name: types.unliteral(arg) for name, arg in kws.items()})

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """Refuse calls from Python: there is no machine code to run."""
        raise TypeError(f"{self.py_func.__name__} is a part of compiled functions; Python cannot call it")


class PartCompiler(Compiler):
    """The usual pipeline, ending in intermediate code."""

    def define_pipelines(self) -> Any:
        """Return the usual passes; their output is kept in a library of ours."""
        self.state.library = PartLibrary(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class PartLibrary(JITCodeLibrary):
    """Intermediate code to be linked into callers."""

    @property
    def codegen(self) -> Any:
        """Return where the environment of the function, of which there is no machine code, is set."""
        return Nowhere()

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Emit nothing."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the null pointer."""
        return 0


class Nowhere:
    """Takes the environments that Numba sets, which only code for Python objects uses."""

    def set_env(self, name: str, env: Any) -> None:
        """Do nothing."""
