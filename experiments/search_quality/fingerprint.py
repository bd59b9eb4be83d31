"""What exact evaluations depend on: the problem, and the sources that compute them, found by following imports.

Those of the cost model are left out: it predicts evaluations and has no part in them.
"""

import ast
import hashlib
from pathlib import Path

from autotune.decode_problem import DecodeProblem
from autotune.problem_spec import ProblemSpec

ROOT = Path(__file__).resolve().parents[2]
COMPUTES = "autotune.decode_problem"
PREDICTS = ROOT / "costmodel"


def fingerprint(spec: ProblemSpec, problem: DecodeProblem) -> str:
    """Return a name of everything that evaluations and bounds of a problem depend on."""
    asked = (spec.workload, spec.base.fingerprint(), spec.devices, spec.routing_seed, problem.knobs)
    digest = hashlib.sha256(repr(asked).encode())
    for source in sorted(imported_sources(COMPUTES)):
        digest.update(_code(source).encode())
    return digest.hexdigest()[:16]


def _code(source: Path) -> str:
    """Return what a source computes, whatever its layout, its comments and its docstrings."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_text(item)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def imported_sources(module: str) -> set[Path]:
    """Return the project's files that a module imports, directly or not, itself among them."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file_of(waiting.pop())
        if path is not None and path not in found and PREDICTS not in path.parents:
            found.add(path)
            waiting += _imports(path)
    return found


def _file_of(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _imports(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
