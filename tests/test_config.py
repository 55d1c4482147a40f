"""Settings come from files, overrides and flags, in that order; what means nothing is refused by name."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.build.factories import POLICIES
from agent.cli.config import app
from agent.config import load, origins, restore
from agent.errors import ConfigError
from agent.settings import MODEL_FREE_POLICIES, BudgetSettings, Choice, Settings
from sandboxes import Workspace


def refusal(*overrides, files=()):
    with pytest.raises(ConfigError) as caught:
        load(files, overrides)
    return str(caught.value)


class TestLayers:
    def test_without_anything_the_defaults_hold(self):
        assert load() == Settings()

    def test_a_later_file_an_override_and_a_flag_each_win_over_what_came_before(self, tmp_path):
        first, second = tmp_path / "a.toml", tmp_path / "b.toml"
        first.write_text("seed = 1\nworkers = 2\n[budget]\nmax_nodes = 3\nmax_usd = 1.0\n")
        second.write_text("[budget]\nmax_nodes = 4\nmax_tokens = 5\n")
        settings = load([first, second], ["budget.max_tokens=6", "workers=7"], {"workers": 8})
        assert (settings.seed, settings.workers) == (1, 8)
        budget = settings.budget
        assert (budget.max_nodes, budget.max_usd, budget.max_tokens) == (4, 1.0, 6)

    def test_in_python_a_name_alone_is_a_policy_or_a_search(self):
        settings = Settings(policy="openai/x", search="mcts")
        assert (settings.policy, settings.search) == (Choice(name="openai/x"), Choice(name="mcts"))
        assert load(overrides=["policy=openai/x"]) == load(overrides=["policy.name=openai/x"])
        assert Workspace(path="checkout") == Workspace(path=Path("checkout"))

    def test_an_override_is_a_toml_value_or_a_bare_word(self):
        settings = load(overrides=['sandbox.setup=["a b", "c"]', "sandbox.image=python:3.11", "policy.name=openai/x"])
        assert settings.sandbox.setup == ("a b", "c")
        assert (settings.sandbox.image, settings.policy.name) == ("python:3.11", "openai/x")

    def test_an_empty_table_takes_nothing_away(self):
        assert load(overrides=["seed=3", "budget.max_nodes=4", "budget={}"]).budget.max_nodes == 4


class TestOptions:
    def test_every_other_key_of_a_search_or_policy_is_an_option_of_it(self, tmp_path):
        file = tmp_path / "ramify.toml"
        file.write_text('[search]\nc = 1.4\nname = "mcts"\n')
        search = load([file]).search
        assert (search.name, search.options) == ("mcts", {"c": 1.4})

    def test_a_bare_string_is_the_name(self):
        assert load(overrides=["search=mcts"]).search.name == "mcts"

    def test_naming_another_search_drops_the_options_of_the_one_before(self):
        assert load(overrides=["search=mcts", "search.c=2"], flags={"search.name": "linear"}).search.options == {}

    def test_options_that_were_given_before_any_name_are_kept(self):
        assert load(overrides=["search.c=2"], flags={"search.name": "mcts"}).search.options == {"c": 2}

    def test_naming_the_same_search_again_keeps_its_options(self):
        assert load(overrides=["search=mcts", "search.c=2"], flags={"search.name": "mcts"}).search.options == {"c": 2}


class TestOptionsOfEarlierVersions:
    def test_are_taken_by_the_names_of_today(self):
        settings = load(overrides=["value=judge", "value.max_mends=3", "panel=[{name='openai/x', max_mends=1}]"])
        assert (settings.value.options, settings.panel[0].options) == ({"max_retries": 3}, {"max_retries": 1})
        dumped = {"value": {"name": "judge", "options": {"max_mends": 3}}}
        assert restore(dumped).value == Choice.model_validate(dumped["value"]) == settings.value

    def test_have_the_origin_that_gave_them(self):
        (found,) = (each for each in origins(overrides=["value.max_mends=3"]) if each.key.startswith("value.options"))
        assert (found.key, found.origin) == ("value.options.max_retries", "-c value.max_mends=3")


class TestPanels:
    def test_a_list_of_policies_is_one_and_a_panel_of_the_others(self, tmp_path):
        settings = load(overrides=['policy=["mutate", "openai/x", {name="openai/y", max_retries=1}]'])
        assert settings.policy.name == "mutate"
        assert [(each.name, each.options) for each in settings.panel] == [
            ("openai/x", {}),
            ("openai/y", {"max_retries": 1}),
        ]
        assert restore(settings.model_dump(mode="json")) == settings

    def test_one_policy_on_the_command_line_is_alone(self):
        flags = {"policy.name": "openai/z", "panel": []}
        settings = load(overrides=['policy=["mutate", "openai/x"]'], flags=flags)
        assert (settings.policy.name, settings.panel) == ("openai/z", ())

    def test_a_member_without_a_name_is_refused(self):
        assert "panel" in refusal("panel=[{max_retries=1}]")

    def test_fields_of_a_models_requests_are_taken_as_they_are(self):
        settings = load(overrides=["model.body.tool_choice=required", 'model.body.structured_outputs={choice=["a"]}'])
        assert settings.model.body == {"tool_choice": "required", "structured_outputs": {"choice": ["a"]}}
        assert restore(settings.model_dump(mode="json")) == settings

    def test_a_policy_that_can_be_made_is_not_taken_for_a_model(self):
        assert set(MODEL_FREE_POLICIES) == set(POLICIES)

    def test_a_gate_is_one_that_exists(self):
        assert load(overrides=["gate=strict"]).gate == "strict"
        assert "gate" in refusal("gate=srict")


class TestRefusals:
    @pytest.mark.parametrize(
        ("override", "nearest"),
        [
            ("budget.max_node=3", "budget.max_nodes"),
            ("max_nodes=3", "budget.max_nodes"),
            ("sandbox.limits.pid=3", "sandbox.limits.pids"),
            ("bugdet={}", "budget"),
            ("sead=1", "seed"),
        ],
    )
    def test_an_unknown_key_names_its_nearest_neighbour_and_where_it_came_from(self, override, nearest):
        message = refusal(override)
        assert f"did you mean `{nearest}`?" in message
        assert f"-c {override}" in message

    def test_an_unknown_key_in_a_file_names_the_file(self, tmp_path):
        file = tmp_path / "ramify.toml"
        file.write_text("[model]\ntemprature = 1.0\n")
        message = refusal(files=[file])
        assert "`model.temprature`" in message
        assert str(file) in message
        assert "`model.temperature`" in message

    @pytest.mark.parametrize(
        ("override", "value"),
        [
            ("budget.max_nodes=ten", "'ten'"),
            ("budget.max_nodes=1.5", "1.5"),
            ("workers=true", "True"),
            ("workers=0", "0"),
            ("budget.max_usd=nan", "nan"),
            ("sandbox.kind=podman", "'podman'"),
            ("search=3", "3"),
        ],
    )
    def test_a_wrong_value_is_named_with_its_key(self, override, value):
        message = refusal(override)
        assert f"`{override.partition('=')[0]}`" in message
        assert f"is {value}, " in message

    def test_a_word_without_a_value_is_neither_a_file_nor_a_setting(self):
        assert "neither a settings file nor KEY=VALUE" in refusal("seed")

    def test_a_file_that_is_not_there_or_not_toml_is_named(self, tmp_path):
        broken = tmp_path / "broken.toml"
        broken.write_text("a = [")
        assert "missing.toml" in refusal(files=[tmp_path / "missing.toml"])
        assert "broken.toml is not TOML" in refusal(files=[broken])

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: Settings(serch=1), "unknown setting `serch`; did you mean `search`?"),
            (lambda: Settings(max_nodes=3), "unknown setting `max_nodes`; did you mean `budget.max_nodes`?"),
            (lambda: Settings(budget={"max_node": 3}), "`budget.max_node`; did you mean `budget.max_nodes`?"),
            (lambda: BudgetSettings(max_node=3), "unknown setting `max_node`; did you mean `max_nodes`?"),
            (lambda: Settings(workers=0), "`workers` is 0, but should be greater than or equal to 1"),
            (lambda: load(overrides=["model.price=3,15"]), "'3,15', but should be a list, such as [3,15]"),
            (lambda: load(overrides=["sandbox.setup=make"]), 'should be a list, such as ["make"]'),
            (lambda: Settings(policy=3), "`policy` is 3, but "),
        ],
    )
    def test_in_python_they_name_the_key_and_the_value_too(self, make, says):
        with pytest.raises(ConfigError) as caught:
            make()
        assert says in str(caught.value)


def test_settings_survive_the_journal():
    settings = load(overrides=["search=mcts", "search.c=2", 'sandbox.setup=["x"]', "model.price=[1, 2, 0.5]"])
    assert restore(settings.model_dump(mode="json")) == settings


class TestShow:
    def test_what_is_shown_can_be_given_back(self, tmp_path):
        given = [
            'sandbox.env={A="x \\"y\\""}',
            "policy=['mutate', 'openai/x']",
            "search.name=mcts",
            "search.c=1.4",
            "seed=3",
        ]
        page = CliRunner().invoke(app, ["show", *(word for each in given for word in ("-c", each))]).stdout
        (tmp_path / "shown.toml").write_text(page)
        assert load([tmp_path / "shown.toml"]) == load(overrides=given)

    def test_each_setting_says_what_set_it_last(self, tmp_path):
        file = tmp_path / "a.toml"
        file.write_text("seed = 1\nworkers = 2\n")
        argv = ["show", "--origin", "-c", str(file), "-c", "seed=5"]
        lines = CliRunner().invoke(app, argv).stdout.splitlines()
        facts = {line.split()[0]: line.partition("  # ")[2].strip() for line in lines if not line.startswith("#")}
        assert (facts["seed"], facts["workers"], facts["gate"]) == ("-c seed=5", str(file), "default")
        assert any(line.startswith("# budget.max_tokens is not set") for line in lines)

    def test_an_empty_table_that_takes_nothing_away_has_set_nothing(self):
        found = {each.key: each.origin for each in origins(overrides=["budget.max_nodes=4", "budget={}"])}
        assert (found["budget.max_nodes"], found["seed"]) == ("-c budget.max_nodes=4", "default")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["policy=openai/x"], "auto"),
        (["policy=openai/x", "rollouts=3"], "best_of_n"),
        (["policy=openai/x", "rounds=2"], "best_of_n"),
        (["policy=openai/x", "rollouts=3", "search=mcts"], "mcts"),
        (["rollouts=3"], "auto"),
        (["policy=['mutate', 'openai/x']", "rollouts=3"], "best_of_n"),
    ],
)
def test_rounds_are_made_of_independent_rollouts_unless_a_search_is_named_or_single_edits_are_proposed(given, name):
    assert load(overrides=given).resolved_search.name == name
