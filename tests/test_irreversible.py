"""Commands that change the world for good are told from those that do not, and refused unless they are allowed."""

from __future__ import annotations

from typing import get_args

import pytest

from agent.actions import Effect, Shell, apply, effect
from agent.actions.irreversible import Kind, irreversible
from agent.config import load
from agent.errors import ConfigError
from agent.measure import SuiteReport
from sandboxes import Provider, Workspace

IRREVERSIBLE = {
    "push": [
        "git push",
        "git -C sub push origin main",
        "git add . && git push -f",
        "sudo -E git push",
        "env X=1 git push",
        "TOKEN=x timeout 60 git push",
        "/usr/bin/git push",
        "if true; then git push; fi",
        "bash -c 'cd a; git push'",
        "sh -lc \"bash -c 'git push'\"",
        "eval 'git push'",
        "x=$(git push)",
        "git commit -m x\ngit push",
        "git push \\\n origin",
        "cat <<EOF\nit's\nEOF\ngit push",
        "bash <<'EOF'\ncd a\ngit push\nEOF",
        "for r in a b; do git push $r; done",
        "echo 'git push' | sh",
        "echo git push | bash -x",
        "cd a && printf '%s\\n' 'git push' 2>&1 | tr a b | sudo -u me /bin/sh -s -- x",
        "echo -e 'cd a\\ngit push' | bash",
        "cat <<EOF | sh\ngit push\nEOF",
        "bash <<< 'cd a; git push'",
        "bash <(echo 'git push')",
        "ls | xargs -n 1 git push",
        "ls | xargs -I {} sh -c 'git push {}'",
        "find . -name a -exec git push {} +",
        "env -u A -S 'git push'",
        "env -u A B=1 nice -n 5 git push",
        "sudo -u me git push",
        "git subtree push --prefix a origin b",
        "svn commit -m x",
        "gh pr create --fill",
        "gh api repos/a/b/issues -f title=x",
    ],
    "publish": [
        "npm publish",
        "yarn npm publish --access public",
        "python -m twine upload dist/*",
        "uvx twine upload dist/*",
        "poetry run twine upload dist/*",
        "python3 setup.py sdist upload",
        "uv publish",
        "cargo yank --version 1.0.0",
        "gem push a.gem",
        "docker push me/image",
        "docker buildx build . --push",
        "mvn -q deploy",
        "./gradlew publish",
    ],
    "deploy": [
        "kubectl apply -f a.yaml",
        "terraform -chdir=a apply -auto-approve",
        "aws s3 sync . s3://bucket",
        "helm upgrade a b",
        "flyctl deploy",
    ],
    "send": [
        "curl -sX POST https://example.org",
        "curl https://example.org -d a=b",
        "curl --request=DELETE https://example.org",
        "wget --post-data=a https://example.org",
        "http POST example.org a=b",
        "python -c 'import requests; requests.post(\"https://example.org\")'",
        "ssh host reboot",
        "rsync -a . host:/srv",
    ],
    "destroy": ["rm -rf /", "rm -rf ~", "dd if=/dev/zero of=/dev/sda", "mkfs.ext4 /dev/sda1"],
}
HARMLESS = [
    "",
    "git status",
    "git stash push",
    "git push --dry-run",
    "git log --grep push",
    "git commit -m 'then git push'",
    "git commit -m 'ssh: fix' -m 'curl -X POST'",
    "grep -rn 'git push' docs",
    "grep -rn -e 'bash -c' -e 'git push' .",
    "rg 'npm publish' .github/workflows",
    "echo 'run git push'",
    "echo 'git push' | grep push",
    "echo 'git push' | sh -n",
    "echo 'git push' | sh script.sh",
    "echo 'git push' | bash -c 'cat'",
    "echo 'git push' > hook.sh; sh hook.sh",
    "echo 'to git push is not done' | sh",
    "cat <<EOF | grep sh\ngit push\nEOF",
    "ls | xargs -n 1 echo git push",
    "cat > notes.md <<EOF\ngit push origin main\nEOF",
    "cat > deploy.sh <<'END'\n#!/bin/sh\nkubectl apply -f a\nEND\nchmod +x deploy.sh",
    "python - <<EOF\nimport subprocess\nssh = 3\nEOF",
    "sed -i 's/npm publish/npm pack/' a.yml",
    "# git push",
    "x = a << b\ny << b",
    "grep mail file",
    "ls ssh docs",
    "curl -sSfL https://example.org -o page",
    "curl -X POST http://localhost:8000/items -d a=b",
    "wget https://example.org/x",
    "docker build .",
    "rm -rf /tmp/x build",
    "dd if=a of=/dev/null",
    "gh pr view 3",
    "rsync -a a b",
    "npm test",
    "npm run publish-docs",
    "npm publish --dry-run",
    "pip install -e . && python setup.py build_ext --inplace",
    "python manage.py test",
    "python manage.py makemigrations --check",
    "python manage.py migrate --plan",
    "python manage.py showmigrations",
    "alembic history",
    "alembic upgrade head --sql",
    "rails test",
    "psql -c 'select last_update from t'",
    "pytest tests/test_push.py -k 'push or publish'",
    "gradle publishToMavenLocal",
    "terraform plan",
    "kubectl get pods",
    "alembic upgrade head",
    "python -m alembic -c a.ini downgrade -1",
    "python manage.py migrate",
    "./manage.py migrate app 0001",
    "cd site && python3 site/manage.py flush --no-input",
    "django-admin migrate",
    "bundle exec rails db:migrate",
    "bin/rails db:drop",
    "rake db:schema:load",
    "npx prisma migrate deploy",
    "npx prisma db push",
    "flask db upgrade",
    "php artisan migrate:fresh",
    "psql -c 'DROP TABLE users'",
]


class TestACommand:
    @pytest.mark.parametrize(
        ("kind", "command"), [(kind, command) for kind, commands in IRREVERSIBLE.items() for command in commands]
    )
    def test_made_to_change_the_world_cannot_be_taken_back(self, kind: str, command: str) -> None:
        found = irreversible(command)
        assert found is not None
        assert found.kind == kind
        assert effect(Shell(command)) is Effect.IRREVERSIBLE

    @pytest.mark.parametrize("command", HARMLESS)
    def test_of_another_kind_reaches_the_machine_only(self, command: str) -> None:
        assert irreversible(command) is None
        assert effect(Shell(command)) is Effect.MACHINE

    @pytest.mark.parametrize(
        "piece", ["a<<b\n", "rm x ", "git -a ", "sudo ", "'", "bash -c '", "x=1 ", "echo a | sh ", "find -exec "]
    )
    def test_of_any_length_is_classed(self, piece: str) -> None:
        assert irreversible(piece * (20_000 // len(piece))) is None


def test_every_kind_has_its_commands() -> None:
    assert set(IRREVERSIBLE) == set(get_args(Kind)) - {"migrate"}  # which only settings may still name


@pytest.mark.namespace
def test_an_irreversible_command_is_refused_with_what_to_do_instead_and_run_where_it_is_allowed(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def no_tests(tests: tuple[str, ...]) -> SuiteReport:
        raise AssertionError("no test was asked for")

    repo = tmp_path_factory.mktemp("repo")
    (repo / "npm").write_text("#!/bin/sh\necho published\n")
    (repo / "npm").chmod(0o755)
    base = provider.create(Workspace(path=repo))
    command = Shell("touch begun && ./npm publish")
    with provider.at(base) as box:
        seen = apply(command, box, no_tests)
        assert (seen.ok, seen.refused) == (False, True)
        assert "`./npm publish` changes something outside of this repository" in seen.text
        assert "Leave this step out" in seen.text
        assert provider.changes(base, box.snapshot()) == ()
        assert apply(command, box, no_tests, ("push",)).refused
        allowed = apply(command, box, no_tests, ("publish",))
        assert (allowed.ok, allowed.refused, allowed.text) == (True, False, "exit code: 0\npublished")


def test_settings_may_name_the_kind_of_migrations_although_they_are_run_without() -> None:
    assert load(overrides=['sandbox.allow=["migrate"]']).sandbox.allow == ("migrate",)
    assert irreversible("python manage.py migrate") is None


def test_kinds_are_allowed_by_name_and_no_other_name_is() -> None:
    assert load(overrides=['sandbox.allow=["push", "send"]']).sandbox.allow == ("push", "send")
    with pytest.raises(ConfigError, match=r"sandbox\.allow.*'everything'.*'push'"):
        load(overrides=['sandbox.allow=["everything"]'])
