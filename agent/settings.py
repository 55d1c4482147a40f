"""Settings: all that can be set, typed, with defaults. `agent.config` reads them from files and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from agent.actions.irreversible import Kind
from agent.measure.timing import Timing
from agent.own_words import read_instructions, read_prompts
from sandboxes import Limits

__all__ = [
    "MODEL_FREE_POLICIES",
    "BudgetSettings",
    "Choice",
    "Instructions",
    "MeasureSettings",
    "MemorySettings",
    "ModelSettings",
    "OwnPrompts",
    "RefineSettings",
    "SandboxSettings",
    "Settings",
    "TournamentSettings",
]

MODEL_FREE_POLICIES = ("mutate", "edit")
"""Policies that enumerate edits, and say nothing in words."""

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _absolute(path: Path) -> Path:
    """A run that is resumed elsewhere finds the same file."""
    return path.expanduser().absolute()


class Choice(BaseModel):
    """An implementation by name, and the keywords of its constructor."""

    model_config = _STRICT
    name: str
    options: dict[str, Any] = {}


class SandboxSettings(BaseModel):
    """Where actions run."""

    model_config = _STRICT
    kind: Literal["auto", "docker", "commit", "namespace"] = "auto"
    """`docker` is `commit` where the image or the engine allows no better; `commit` is that in any case."""
    image: str | None = None
    environment: tuple[str, ...] = ()
    """Commands that build what the tests need without the workspace; cached across runs."""
    setup: tuple[str, ...] = ()
    """Commands run once in the workspace, with the network on."""
    env: dict[str, str] = {}
    limits: Limits = Limits()
    allow: tuple[Kind, ...] = ()
    """Kinds of shell commands that may be run although they change something for good: push, publish, deploy, send,
    destroy. Others are refused."""
    paranoid: bool = False
    """Compare every fork with a digest of what was frozen, and stop where it differs. Slower: files are read again."""


class BudgetSettings(BaseModel):
    """What a run may spend; without a key, no limit."""

    model_config = _STRICT
    max_nodes: Annotated[int, Field(ge=1)] | None = 1000
    max_measurements: Annotated[int, Field(ge=1)] | None = None
    max_calls: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_usd: Annotated[float, Field(ge=0)] | None = 3.0
    max_seconds: Annotated[float, Field(gt=0)] | None = 3600.0


class ModelSettings(BaseModel):
    """How a model is spoken to."""

    model_config = _STRICT
    base_url: str | None = None
    """An OpenAI-compatible endpoint; None: the provider that the model's name says."""
    price: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=2, max_length=4)] | None = None
    """Dollars per million tokens, where the price list does not know the model: of the prompt, of the completion, and,
    where they differ, of the prompt when read from a cache and when written to one."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    """Not sent to models that take none while they reason: OpenAI's that reason, and Claude models that think."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much a model reasons before it answers; None: as its provider has it. Which of these a model takes, its
    provider says; one that is not known to reason is asked without."""
    thinking_tokens: Annotated[int, Field(ge=1024)] | None = None
    """The most that a Claude model, or another with such a budget, thinks before an answer, in tokens; goes before
    `reasoning_effort` there. Models that decide themselves how long they think are better given an effort."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """The interface of OpenAI's by which `openai/NAME` is spoken to. `responses` keeps a model's reasoning from turn to
    turn; `auto`: `responses` for OpenAI's own models that reason, else `chat`."""
    cache_ttl: Literal["auto", "5m", "1h"] = "auto"
    """How long Claude's provider keeps the beginning of a conversation that nobody reads. An hour costs more to write;
    `auto`: an hour where the tests of a state take longer than 150 s."""
    body: dict[str, Any] = {}
    """Further fields of each request, such as `max_tokens`, `tool_choice` or vLLM's `structured_outputs`."""
    tool_calls: Literal["auto", "native", "text"] = "auto"
    """`native`: as the provider's interface has them; `text`: in tags in what the model says, for models without tools;
    `auto`: as the model is known, or turns out, to take them."""
    stream: bool = True
    """Answers come in pieces, so that one that stalls is noticed early; false for a server that cannot."""
    connect_s: Annotated[float, Field(gt=0)] = 10.0
    first_token_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds from the question to the first piece of the answer; a model may think for minutes before it."""
    idle_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds between two pieces."""
    total_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds from the question to the end of the answer."""
    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """Questions to one provider at the same time, all workers and runs of this process together."""
    warm: bool = True
    """Questions that begin alike wait until the first of them is being answered, so that the provider has read their
    beginning; false for one that keeps no beginnings. Those that are alike but for the seed then go as one with `n`,
    where the provider has that and `body` gives no `n`."""
    context_tokens: Annotated[int, Field(ge=2000)] | None = None
    """How much the model can read, where the price list does not know it; above it the oldest results are left out."""
    context_soft_cap: Annotated[int, Field(ge=2000)] = 120_000
    """Tokens of a conversation, by estimate, above which the oldest results are left out, however much the model can
    read."""

    def of_client(self) -> dict[str, Any]:
        """The keywords of `agent.models.registry.make`; `cache_ttl` is not among them, as it depends on the run."""
        return self.model_dump(exclude={"tool_calls", "context_tokens", "context_soft_cap", "cache_ttl"})


class MeasureSettings(BaseModel):
    """How tests are run."""

    model_config = _STRICT
    baseline_runs: Annotated[int, Field(ge=1)] | None = None
    """Runs of the base state's tests; those that do not end the same way every time are set aside. None: two where
    the tests are quick, else one."""
    every_s: Annotated[float, Field(ge=0)] = 20.0
    """Seconds that all tests may take to be run in every state. Where they take longer, a state is measured by the
    tests that its change can reach."""
    whole_s: Annotated[float, Field(ge=0)] = 100.0
    """Seconds that the first run of all tests may take. Tests that it does not come to are run in the base state when
    they are needed; 0: all of them."""
    scope_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds that a run of those tests may take. They are chosen to take a quarter of that by estimate."""
    final_s: Annotated[float, Field(ge=0)] = 900.0
    """Seconds that a run of all tests may take before an answer is given, where states are measured by a part of them;
    0: no such run is made. Of runners that cannot run a part of the tests, the seconds of any run."""
    jobs: Annotated[int, Field(ge=1)] = 1
    """Processes that run the tests of a state at the same time, where the runner can do that: pytest, Django's."""
    framework: str | None = None
    """What the test command runs, by name (`agent.measure.adapters.registry.FRAMEWORKS`). None: as the command and the
    repository's files say."""

    @property
    def timing(self) -> Timing:
        """How long runs of the tests may take."""
        return Timing(self.every_s, self.whole_s, self.scope_s, self.final_s, self.jobs)


class TournamentSettings(BaseModel):
    """How the best of several rollouts is found."""

    model_config = _STRICT
    group: Annotated[int, Field(ge=2, le=26)] = 2
    """Candidates that a judge compares at a time."""
    votes: Annotated[int, Field(ge=1)] = 8
    """Votes on each group, the order rotated."""
    judge: Literal["vote", "debate", "none"] = "vote"
    """Who decides among candidates that tests leave equal. `vote`: a model is asked once a vote, nobody where there is
    no model; `debate`: a vote takes a speech for each candidate and a verdict, so that fewer votes can be afforded;
    `none`: rules that ask nobody."""
    model: str | None = None
    """Which model; None: the one that proposes."""
    crosscheck: bool = True
    """Whether three or more candidates that tests leave equal are tried with the tests that each of them adds, where
    nobody is asked or votes are level (`agent.solver.cross_testing`). The tests of one candidate take a run for each of
    the others, its own and the base state."""


class RefineSettings(BaseModel):
    """What a further wave of rollouts is told."""

    model_config = _STRICT
    priors: Annotated[int, Field(ge=0)] = 4
    """Summaries of earlier rollouts, the best ones."""
    plan: bool = True
    """A model, where there is one, draws a plan from those summaries."""
    model: str | None = None
    """Which model draws it; None: the one that proposes."""
    local: Annotated[float, Field(ge=0, le=1)] = 0.25
    """The share of a wave's rollouts, rounded down, that go on from the last good state of an earlier one in place of
    the base state."""
    gate: bool = True
    """No wave follows where the task turned out easy, or where the last one has found nothing better."""


class MemorySettings(BaseModel):
    """What is remembered of verified runs, and told to a model that proposes."""

    model_config = _STRICT
    path: Annotated[Path, AfterValidator(_absolute)] | None = None
    """The file; None: nothing is remembered, and nothing told."""
    enabled: bool = True
    """false: the same, although there is a file."""
    demos: Annotated[int, Field(ge=0)] = 2
    """Past repairs that are shown, the likest ones."""
    insights: Annotated[int, Field(ge=0)] = 5
    tokens: Annotated[int, Field(ge=100)] = 3000
    """The most that a model is told of memory at the base state; half of it where an error turns up later."""


class Instructions(BaseModel):
    """A person's own instructions, with their text."""

    model_config = _STRICT
    path: Path | None = None
    """Where they were read."""
    text: str


class OwnPrompts(BaseModel):
    """Prompts in the place of shipped ones, with their texts."""

    model_config = _STRICT
    path: Path | None = None
    """The directory in which they were read."""
    texts: dict[str, str]
    """By the name of the prompt."""


def _with_text(given: object) -> object:
    if not isinstance(given, str | Path):
        return given
    path = _absolute(Path(given))
    return Instructions(path=path, text=read_instructions(path))


def _with_texts(given: object) -> object:
    if not isinstance(given, str | Path):
        return given
    path = _absolute(Path(given))
    return OwnPrompts(path=path, texts=read_prompts(path))


class Settings(BaseModel):
    """All that can be set, with its defaults."""

    model_config = _STRICT
    policy: Choice = Choice(name="mutate")
    """`mutate`, `edit` (its edits, ranked), or the name of a model. `policy = ["mutate", "openai/x"]` names this one
    and a panel."""
    panel: tuple[Choice, ...] = ()
    """Further policies on the same tree: names, or tables with a `name` and options."""
    search: Choice = Choice(name="auto")
    """An algorithm by name. Some have other defaults for `mutate` (`agent.search.registry.SINGLE_EDITS`)."""
    value: Choice = Choice(name="tests")
    """What a state is worth, by name. All but `tests` ask a model: `model`, or else the policy's."""
    sandbox: SandboxSettings = SandboxSettings()
    budget: BudgetSettings = BudgetSettings()
    model: ModelSettings = ModelSettings()
    measure: MeasureSettings = MeasureSettings()
    gate: Literal["none", "strict"] = "none"
    """`strict`: only states are expanded in which a test passes that failed in their parent, and none the other way."""
    delegate: bool = False
    """Divide the issue into parts, search each on its own, and merge what passes (`agent.solver.delegation`); `workers`
    parts at the same time."""
    rollouts: Annotated[int, Field(ge=1)] = 1
    """Rollouts to finish in each wave; with more than one, a tournament chooses among what they come to."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """Waves of rollouts; each after the first is told what the ones before have learned."""
    tournament: TournamentSettings = TournamentSettings()
    refine: RefineSettings = RefineSettings()
    memory: MemorySettings = MemorySettings()
    instructions: Annotated[Instructions | None, BeforeValidator(_with_text)] = None
    """A text file with your own instructions, for the system prompt of models that propose; at most 20,000 bytes. The
    run keeps its text."""
    prompts: Annotated[OwnPrompts | None, BeforeValidator(_with_texts)] = None
    """A directory with prompts of your own: each file takes the place of the shipped prompt of the same name. The run
    keeps their texts."""
    workers: Annotated[int, Field(ge=1)] = 1
    """Expansions at the same time; with more than one, the order of nodes depends on the clock."""
    seed: int = 0

    @property
    def in_waves(self) -> bool:
        """Whether rollouts are finished and compared."""
        return self.rollouts > 1 or self.rounds > 1

    @property
    def searching(self) -> Choice:
        """The search that is meant: where it is left open, waves are made of independent rollouts, unless single edits
        are proposed, which come to something in great number only."""
        left_open = self.search.name == "auto" and not self.search.options
        independent = self.in_waves and left_open and not self.single_edits
        return Choice(name="best_of_n", options={"n": self.rollouts}) if independent else self.search

    @property
    def lines(self) -> int | None:
        """Lines of work to be submitted: the rollouts that were asked for; None: nobody works in lines."""
        if self.single_edits:
            return None
        asked = self.search.options.get("n", 1) if self.search.name == "best_of_n" else 1
        return max(self.rollouts, int(asked))

    @property
    def patience(self) -> int:
        """Lines of work in a row that may end without anything better: a search that was asked for by name has more."""
        return 3 if self.search.name == "auto" else 10

    @property
    def single_edits(self) -> bool:
        """Whether nobody proposes but `mutate` and `edit`."""
        return self.proposing is None

    @property
    def proposing(self) -> str | None:
        """The first model among the policies."""
        return next(
            (choice.name for choice in (self.policy, *self.panel) if choice.name not in MODEL_FREE_POLICIES), None
        )
