"""Finds where names of Python sources are used, with rope. It is a program of its own, so that it can be stopped.

On stdin: the folder with the sources, and the names, each as its path and its qualified name: `Till.ring`, `total`,
`total(items` for a parameter, `` for the module itself. On stdout, a line of JSON for each use: the number of the name,
the path, the line, the expression there up to the name, and whether it is certainly this name and no other.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from typing import Any

from rope.base import libutils, pynames
from rope.base.project import Project
from rope.refactor.occurrences import create_finder


def main() -> None:
    """Print all uses. A source that rope cannot read has none."""
    warnings.simplefilter("ignore")
    asked = json.load(sys.stdin)
    project = Project(asked["folder"], ropefolder=None, save_objectdb=False, automatic_soa=False)
    for number, (path, qualified) in enumerate(asked["names"]):
        name = re.split(r"[.(]", qualified)[-1] or libutils.modname(project.get_resource(path)).rpartition(".")[2]
        method = "." in qualified and "(" not in qualified
        try:
            finder = create_finder(
                project, name, _found(project, path, qualified), unsure=lambda _, may=method: may, in_hierarchy=method
            )
        except Exception:  # noqa: S112  # rope fails in many ways on sources that it does not expect
            continue
        for resource in project.get_python_files():
            try:
                for use in finder.find_occurrences(resource):
                    start, end = use.get_primary_range()
                    written = "".join(use.tools.source_code[start:end].split())
                    line = json.dumps([number, resource.path, use.lineno, written, not use.is_unsure()])
                    sys.stdout.write(f"{line}\n")
                    sys.stdout.flush()
            except Exception:  # noqa: S112
                continue


def _found(project: Project, path: str, qualified: str) -> Any:
    """Rope's object for the name."""
    resource = project.get_resource(path)
    if not qualified:
        module = resource.parent if resource.name == "__init__.py" else resource
        return pynames.ImportedModule(libutils.get_string_module(project, ""), resource=module)
    first, *rest = re.findall(r"[.(]?[^.(]+", qualified)
    found = project.get_pymodule(resource)[first]
    for part in rest:
        inside = found.get_object()
        found = inside.get_parameters()[part[1:]] if part[0] == "(" else inside[part[1:]]
    return found


if __name__ == "__main__":
    main()
