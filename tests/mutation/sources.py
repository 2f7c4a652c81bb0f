"""The mutants of a module of an installed package, which is found but never imported."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from mutation.cells import cell_mutants, real_rows
from mutation.mutants import Mutant, mutants
from mutation.plan import CELLS, FAMILIES


def full_name(package: str, module: str) -> str:
    return f"{package}.{'transitions' if module == CELLS else module}"


def source(package: str, module: str) -> str:
    """The text of the module. Raises ModuleNotFoundError."""
    spec = PathFinder.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"there is no package {package}")
    file = Path(spec.submodule_search_locations[0], *module.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    if not file.exists():
        raise ModuleNotFoundError(f"there is no module {package}.{module}")
    return file.read_text(encoding="utf-8")


def mutants_of(package: str, module: str) -> Iterator[Mutant]:
    if module == CELLS:
        return cell_mutants(CELLS, source(package, "transitions"), real_rows())
    return mutants(module, source(package, module), FAMILIES)
