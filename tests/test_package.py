"""What is shipped, what depends on what, and what importing costs."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = {"ramify", "agent", "sandboxes", "benchmarks", "prompts"}
EXPERIMENTS = ("benchmarks/perf/", "benchmarks/flywheel/")


def python(*argv, **kwargs):
    return subprocess.run([sys.executable, *argv], cwd=ROOT, capture_output=True, text=True, timeout=500, **kwargs)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = python("-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    assert built.returncode == 0, built.stderr
    (file,) = folder.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        return archive.namelist()


class TestWheel:
    def test_it_ships_its_packages_and_never_the_tests(self, wheel):
        assert {name.split("/")[0] for name in wheel if ".dist-info/" not in name} == SHIPPED

    def test_it_ships_every_tracked_file_of_them_but_experiments(self, wheel):
        listed = subprocess.run(
            ["git", "ls-files", *SHIPPED], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        assert listed
        assert {name for name in listed if not name.startswith(EXPERIMENTS)} - set(wheel) == set()
        assert [name for name in wheel if name.startswith(EXPERIMENTS)] == []

    @pytest.mark.slow
    def test_nothing_that_it_ships_imports_an_experiment(self, syntax):
        imported = {
            (name, alias)
            for name, nodes in syntax.items()
            if not name.startswith(EXPERIMENTS)
            for node in nodes
            for alias in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        }
        assert imported
        assert [each for each in imported if each[1].startswith(("benchmarks.perf", "benchmarks.flywheel"))] == []

    def test_it_carries_the_licence_and_the_command(self, wheel):
        assert any(name.endswith("licenses/LICENSE") for name in wheel)
        assert any(name.endswith("entry_points.txt") for name in wheel)


class TestImporting:
    def test_the_library_loads_nothing_heavy(self):
        heavy = "{'pydantic', 'networkx', 'typer', 'rich', 'docker', 'libcst', 'litellm', 'openai', 'jinja2'}"
        said = python("-c", f"import sys, agent, sandboxes; print(sorted({heavy} & set(sys.modules)))")
        assert said.stdout.strip() == "[]", said.stderr

    def test_the_help_loads_no_search_and_no_model(self):
        ours = "'agent.engine.engine', 'agent.build.composition'"
        heavy = f"{{'networkx', 'docker', 'libcst', 'litellm', 'openai', 'rich', {ours}}}"
        program = (
            "import sys, agent.cli.app\n"
            "try: agent.cli.app.app(['--help'])\n"
            f"except SystemExit: print(sorted({heavy} & set(sys.modules)))"
        )
        said = python("-c", program)
        assert said.stdout.splitlines()[-1] == "[]", said.stderr

    def test_a_search_loads_no_library_that_it_does_not_use(self):
        heavy = "{'networkx', 'docker', 'litellm', 'openai', 'ray', 'torch'}"
        program = f"import sys, agent.build.composition, agent.solver.solve; print(sorted({heavy} & set(sys.modules)))"
        said = python("-c", program)
        assert said.stdout.strip() == "[]", said.stderr

    @pytest.mark.parametrize("library", ["agent", "ramify"])
    def test_every_public_name_of_the_library_exists_and_is_listed(self, library):
        program = f"import {library} as it; print([name for name in it.__all__ if not hasattr(it, name)], dir(it))"
        said = python("-c", program).stdout.strip()
        assert said.startswith("[] ")
        assert "'solve'" in said

    def test_the_library_is_the_same_under_both_names(self):
        assert python("-c", "import agent, ramify; assert ramify.solve is agent.solve").returncode == 0


class TestARepositoryWithPackagesOfTheSameNames:
    @pytest.fixture
    def there(self, tmp_path):
        for name in ("agent", "prompts", "sandboxes"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("raise SystemExit('a stranger')\n")

        def run(*argv):
            env = os.environ | {"PYTHONPATH": f".{os.pathsep}{ROOT}"}
            return subprocess.run([sys.executable, *argv], cwd=tmp_path, env=env, capture_output=True, text=True)

        return run

    def test_does_not_keep_the_command_from_running(self, there):
        assert "a stranger" in there("-m", "agent", "--version").stderr
        said = there("-c", "import sys; from ramify.__main__ import main; sys.argv[1:] = ['config', 'show']; main()")
        assert (said.returncode, "max_nodes" in said.stdout) == (0, True), said.stderr

    def test_does_not_keep_the_library_from_being_imported(self, there):
        said = there("-c", "from ramify import Settings, solve; print(Settings().seed, solve.__module__)")
        assert said.stdout.split() == ["0", "agent.build.composition"], said.stderr

    def test_is_named_where_it_is_imported_already(self, there):
        said = there("-c", "import sys; sys.modules['agent'] = type(sys)('agent')\nfrom ramify import solve")
        assert "another package `agent` is imported here already" in said.stderr


def test_the_library_has_the_names_of_agent_and_workspace_under_the_name_of_the_distribution():
    import agent
    import ramify
    from sandboxes import Workspace

    assert dir(ramify) == sorted([*agent.__all__, "SandboxError", "Workspace"])
    assert all(getattr(ramify, name) is getattr(agent, name) for name in agent.__all__)
    assert ramify.Workspace is Workspace


def test_the_command_is_started_where_no_other_package_is_imported_first():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"ramify": "ramify.__main__:main"}


def test_dependencies_between_the_packages_run_one_way():
    said = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert said.returncode == 0, said.stdout


def test_the_command_says_its_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = python("-m", "agent", "--version")
    assert (said.returncode, said.stdout) == (0, f"ramify {project['version']}\n")


def test_a_shell_completes_the_names_of_commands() -> None:
    asked = {"_RAMIFY_COMPLETE": "complete_bash", "COMP_WORDS": "ramify sol", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "agent"], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout.split() == ["solve"]


TOOLS = ("benchmarks/perf/", "sandboxes/conformance/")  # they time and test Ramify on repositories of their own


LOOKED_AT = (ast.Attribute, ast.Constant, ast.Import, ast.ImportFrom, ast.List, ast.Tuple)


@pytest.fixture(scope="module")
def syntax():
    """The nodes of each module's syntax that a test here looks at."""
    files = {file.relative_to(ROOT).as_posix(): file for name in SHIPPED for file in (ROOT / name).rglob("*.py")}
    return {
        name: [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, LOOKED_AT)]
        for name, file in files.items()
        if not name.startswith(TOOLS)
    }


@pytest.mark.slow
def test_no_message_advises_to_install_ramify_from_an_index_where_another_project_has_the_name(syntax):
    texts = [(name, node.value) for name, nodes in syntax.items() for node in nodes if isinstance(node, ast.Constant)]
    assert texts
    assert [
        each for each in texts if isinstance(each[1], str) and re.search(r"ramify\[|pip install ramify", each[1])
    ] == []


def test_python_is_parsed_in_one_place_only(syntax):
    """In Python 3.11, two threads that parse at once can both fail (`agent.parsing.syntax_tree`)."""
    parsing = {
        name
        for name, nodes in syntax.items()
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "ast.parse"
    }
    assert parsing == {"agent/parsing.py", "agent/measure/inside/imports.py"}  # the second runs in a process of its own


class TestGit:
    """`sandboxes.git.command` decides by what settings git runs on this machine; whoever starts git past it obeys those
    of strangers."""

    DOOR = "sandboxes/git/command.py"
    INSIDE = (  # what they name is run in a sandbox, or is a pattern of what others run there
        "agent/actions/shell.py",
        "agent/analysis/diagnosis/commands.py",
        "agent/cli/next_step.py",  # names one for a person to type
        "agent/evaluate/verification.py",
        "benchmarks/grading/harness/script.py",
        "benchmarks/data/sources/classic.py",
        "benchmarks/data/sources/images.py",
        "benchmarks/data/sources/scripts.py",
        "sandboxes/forking/workspace_setup.py",
    )

    def test_nothing_but_the_door_names_a_command_of_git_and_those_who_name_one_inside_start_no_program(self, syntax):
        naming = {name for name, each in syntax.items() if any(map(_is_command_of_git, each))} - {self.DOOR}
        starting = {name for name, each in syntax.items() if any(map(_starts_programs, each))}
        assert self.DOOR in starting
        assert naming == set(self.INSIDE)
        assert naming & starting == set()

    def test_nothing_uses_a_library_that_runs_git(self, syntax):
        assert [name for name, each in syntax.items() if any(_imported(node) & LIBRARIES for node in each)] == []


LIBRARIES = {"dulwich", "git", "gitdb", "pygit2"}


def _is_command_of_git(node):
    """A list that begins with git, or a line of shell that does."""
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        first = node.elts[0]
        return isinstance(first, ast.Constant) and re.fullmatch(r"(.*/)?git", str(first.value)) is not None
    said = node.value if isinstance(node, ast.Constant) else None
    return isinstance(said, str) and re.match(r"git -|git [a-z-]+ (-|HEAD|\.|$)", said) is not None


def _starts_programs(node):
    return bool(_imported(node) & {"asyncio", "pexpect", "pty", "subprocess"}) or (
        isinstance(node, ast.Attribute)
        and re.match(r"exec[lv]|p?spawn|posix_spawn|system$|popen", node.attr) is not None
    )


def _imported(node):
    if isinstance(node, ast.Import):
        return {name.name.partition(".")[0] for name in node.names}
    return {node.module.partition(".")[0]} if isinstance(node, ast.ImportFrom) and node.module else set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    program = (
        "import grimp, networkx\n"
        "found = grimp.build_graph('agent', 'sandboxes', 'benchmarks', cache_dir=None)\n"
        "graph = networkx.DiGraph((m, t) for m in found.modules for t in found.find_modules_directly_imported_by(m))\n"
        "circles = [sorted(some) for some in networkx.strongly_connected_components(graph) if len(some) > 1]\n"
        "print(len(graph), circles)"
    )
    modules, circles = python("-c", program).stdout.strip().split(" ", 1)
    assert int(modules) > 500
    assert circles == "[]"
