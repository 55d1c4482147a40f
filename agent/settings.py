"""All settings, typed, with their defaults. `agent.config` reads them from files and the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent.actions.irreversible import Kind
from agent.custom_texts import read_instructions, read_prompts
from agent.efforts import Effort
from agent.measure.timing import Timing
from agent.refusal import refusal
from sandboxes import Limits

MODEL_FREE_POLICIES = ("mutate", "edit")
"""Policies that are not a chat model: they enumerate edits."""

OPERATIONAL: dict[str, bool | set[str]] = {
    "model": {"base_url", "price", "max_concurrent", "stream", "connect_s", "first_token_s", "idle_s", "total_s"},
    "sandbox": {"paranoid"},
    "memory": {"path"},
    "instructions": {"path"},
    "prompts": {"path"},
}
"""Settings that determine where, how fast and how carefully a solver works, but not what it does."""

_RENAMED = {"max_mends": "max_retries"}
"""Options of policies and values, by their names in earlier versions."""


def _absolute(path: Path) -> Path:
    """Return an absolute path, so that a run that is resumed from another directory finds the same file."""
    return path.expanduser().absolute()


def renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a policy, a search or a value by their current names."""
    return {_RENAMED.get(key, key): option for key, option in options.items()}


class Section(BaseModel):
    """Settings that belong together. An unknown key or a wrong value raises `agent.errors.ConfigError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    if not TYPE_CHECKING:  # a type checker derives the keywords from the fields

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise refusal(error.errors(include_url=False)[0], type(self)) from error

        # A section within another is validated together with it, so that errors have whole keys.
        __init__.__pydantic_base_init__ = True


class Choice(Section):
    """An implementation by name, with the keywords of its constructor."""

    name: str
    options: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        """Accept a name alone as a choice without options, and options by their names in earlier versions."""
        if isinstance(value, str):
            return {"name": value}
        if isinstance(value, dict) and isinstance(options := value.get("options"), dict):
            return {**value, "options": renamed(options)}
        return value


class SandboxSettings(Section):
    """Where actions run."""

    kind: Literal["auto", "docker", "commit", "namespace"] = "auto"
    """`auto`: `docker` if an image is named, else the best that works on this machine. `docker` falls back to `commit`
    if states cannot be forked with that image or engine; `commit`: always `docker commit`, which is slower."""
    image: str | None = None
    """The image of the sandbox, for `docker` and `commit`."""
    environment: tuple[str, ...] = ()
    """Commands, with network, that install what the tests need before the workspace exists; their result is cached
    across runs."""
    setup: tuple[str, ...] = ()
    """Commands to run once in the workspace, with network, after those of `environment`."""
    env: dict[str, str] = {}
    """Environment variables of all commands in the sandbox."""
    limits: Limits = Limits()
    """Bytes of memory, number of processes and bytes of output of a command (`memory_bytes`, `pids`, `output_bytes`),
    bytes that the commands of one fork may add (`disk_bytes`), and bytes of all states of the run (`store_bytes`)."""
    allow: tuple[Kind, ...] = ()
    """Kinds of irreversible shell commands that may be run: push, publish, deploy, send, destroy. Others are
    refused."""
    paranoid: bool = False
    """Compare every fork with a digest of its snapshot, and stop if they differ. Slower: files are read again."""


class BudgetSettings(Section):
    """What a run may spend in all its sessions together. None: no limit."""

    max_nodes: Annotated[int, Field(ge=1)] | None = 1000
    """The maximum number of states in the tree, the root included."""
    max_measurements: Annotated[int, Field(ge=1)] | None = None
    """Measured states and verifications."""
    max_calls: Annotated[int, Field(ge=0)] | None = None
    """Requests to models."""
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Prompt tokens, those from a cache included, and completion tokens."""
    max_usd: Annotated[float, Field(ge=0)] | None = 3.0
    """Dollars for models."""
    max_seconds: Annotated[float, Field(gt=0)] | None = 3600.0
    """Seconds after which no new step begins."""


class ModelSettings(Section):
    """How models are called."""

    base_url: str | None = None
    """An OpenAI-compatible endpoint; None: the provider in the model's name."""
    price: Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=2, max_length=4)] | None = None
    """Dollars per million tokens, for models without a listed price: prompt, completion and, if they differ, prompt
    tokens read from a cache and written to one."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    """The sampling temperature; None: the provider's default. It is not sent to models that refuse it while they
    reason: OpenAI's reasoning models, and Claude models that think."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    """How much a model reasons before it answers; None: its provider's default. The provider says which values a model
    takes; the setting is not sent to models that are not known to reason."""
    thinking_tokens: Annotated[int, Field(ge=1024)] | None = None
    """The most tokens that a Claude model, or another with such a budget, thinks before an answer; takes precedence
    over `reasoning_effort` there. For models that decide themselves how long they think, set an effort instead."""
    api: Literal["auto", "chat", "responses"] = "auto"
    """Which of OpenAI's interfaces `openai/NAME` uses. `responses` keeps a model's reasoning from turn to turn; `auto`:
    `responses` for OpenAI's own reasoning models, else `chat`."""
    cache_ttl: Literal["auto", "5m", "1h"] = "auto"
    """How long Claude's provider caches the prefix of a conversation after its last use. Writing to the cache costs
    more for an hour; `auto`: an hour if the tests of a state take longer than 150 s, else five minutes."""
    body: dict[str, Any] = {}
    """Further fields of each request, such as `max_tokens`, `tool_choice` or vLLM's `structured_outputs`."""
    tool_calls: Literal["auto", "native", "text"] = "auto"
    """`native`: through the provider's interface; `text`: as tags in the text, for models without tool support;
    `auto`: native, unless the model is known not to support tools, or turns out not to."""
    stream: bool = True
    """Receive answers in pieces, so that one that stalls is noticed early; false for servers that cannot."""
    connect_s: Annotated[float, Field(gt=0)] = 10.0
    """Seconds to establish a connection. A request that exceeds this or one of the next three limits is retried."""
    first_token_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds from the request to the first piece of the answer; a model may think for minutes before it."""
    idle_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds between two pieces."""
    total_s: Annotated[float, Field(gt=0)] = 600.0
    """Seconds from the request to the end of the answer."""
    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """Requests to one provider at the same time, for all workers and runs of this process together."""
    warm: bool = True
    """Whether requests with a common prefix wait until the answer to the first of them begins, so that the provider
    has cached the prefix; false for providers without a cache. Requests that differ only in the seed are sent as one
    request with `n`, if the provider supports `n` and `body` does not set it."""
    context_tokens: Annotated[int, Field(ge=2000)] | None = None
    """The model's context size in tokens, if the price list does not have it. If a conversation is longer, its oldest
    results are left out."""
    context_soft_cap: Annotated[int, Field(ge=2000)] = 120_000
    """Estimated tokens of a conversation above which the oldest results are left out, however much the model can
    read."""

    def of_client(self) -> dict[str, Any]:
        """The keywords of `agent.models.registry.make`; `cache_ttl` is not among them, as it depends on the run."""
        return self.model_dump(exclude={"tool_calls", "context_tokens", "context_soft_cap", "cache_ttl"})


TIMING = Timing()


class MeasureSettings(Section):
    """How tests are run."""

    baseline_runs: Annotated[int, Field(ge=1)] | None = None
    """How often the tests are run in the root state; tests with different outcomes are set aside as flaky. None: twice
    if the tests are quick, else once."""
    every_s: Annotated[float, Field(ge=0)] = TIMING.every_s
    """If all tests together take at most this many seconds, they are run in every state. If they take longer, only
    the tests that a state's change can reach are run in it."""
    whole_s: Annotated[float, Field(ge=0)] = TIMING.whole_s
    """Time limit in seconds for the first run of all tests. Tests that this run does not reach are run in the root
    state later, when they are needed; with 0, that applies to every test."""
    scope_s: Annotated[float, Field(gt=0)] = TIMING.scope_s
    """Time limit in seconds for a run of the tests that a change can reach. The tests are selected so that their
    estimated time is a sixth of it."""
    final_s: Annotated[float, Field(ge=0)] = TIMING.final_s
    """Time limit in seconds for the final run of all tests, if states were measured by only some of them; 0: no final
    run. For test runners that cannot run a selection of tests, the time limit of every run."""
    jobs: Annotated[int, Field(ge=1)] = TIMING.jobs
    """Processes that run the tests of a state at the same time, for pytest and Django."""
    framework: str | None = None
    """What the test command runs, by name (`agent.measure.adapters.registry.FRAMEWORKS`). None: found from the command
    and the repository's files."""

    @property
    def timing(self) -> Timing:
        """How long runs of the tests may take."""
        return Timing(self.every_s, self.whole_s, self.scope_s, self.final_s, self.jobs)


class TournamentSettings(Section):
    """How the best of several rollouts is chosen."""

    group: Annotated[int, Field(ge=2, le=26)] = 2
    """Candidates that a judge compares at a time."""
    votes: Annotated[int, Field(ge=1)] = 8
    """Votes on each group; the order of the candidates rotates."""
    judge: Literal["vote", "criteria", "debate", "none"] = "vote"
    """What decides among candidates with equal test results. `vote`: a model, asked once per vote; without a model,
    rules decide. `criteria`: the model judges by weighted criteria that it derives from the differences. `debate`:
    each vote takes a speech for each candidate and a verdict, so the budget allows fewer votes. `none`: only rules
    decide."""
    model: str | None = None
    """The model of the judge; None: the policy's."""
    contrast: bool = False
    """Whether a model, once per round, looks at all candidates together and names those that merely satisfy the tests.
    Such a candidate loses to any other with equally good test results, and is not exported."""
    crosscheck: bool = True
    """Whether candidates with equal test results (without a judge, at least three of them) are run against each
    other's new tests before any vote (`agent.solver.cross_testing`). The tests of a candidate are run on the root
    state and on each candidate. The judge is shown the results, and they break ties."""
    stop_agreed: bool = True
    """Whether a round ends early when more than half of its rollouts, and at least three, agree. Each of these breaks
    nothing, and solves the task or, if no goal is known, was submitted. They agree if they make the same change,
    apart from comments and layout, or if a critic accepted all of them."""
    model_summaries: bool = False
    """Whether a model, if there is one, summarises all rollouts before the vote; otherwise it summarises only those
    that the next round is told about."""


class RefineSettings(Section):
    """What rounds after the first learn from earlier rollouts."""

    priors: Annotated[int, Field(ge=0)] = 4
    """How many summaries of the best earlier rollouts are shown."""
    plan: bool = True
    """Whether a model, if there is one, draws a plan from those summaries."""
    model: str | None = None
    """The model that draws the plan; None: the policy's."""
    local: Annotated[float, Field(ge=0, le=1)] = 0.25
    """The share of a round's rollouts, rounded down, that continue from the last good state of an earlier rollout
    instead of the root state."""
    gate: bool = True
    """Whether the remaining rounds are skipped if the task proves easy, or if the last round found nothing better."""


class MemorySettings(Section):
    """What is remembered of verified runs, and shown to models."""

    path: Annotated[Path, AfterValidator(_absolute)] | None = None
    """The memory file; None: no memory."""
    enabled: bool = True
    """false: no memory is used, even if `memory.path` is set."""
    remember: bool = True
    """false: the memory is only read. The run adds nothing to it, so later runs do not learn from this one."""
    reflect: bool = False
    """Whether the policy's model, if there is one, is asked at the end of a run what can be learned from states whose
    value was far from the expected one."""
    demos: Annotated[int, Field(ge=0)] = 2
    """How many similar past repairs are shown."""
    insights: Annotated[int, Field(ge=0)] = 5
    """How many insights from past repairs are shown."""
    tokens: Annotated[int, Field(ge=100)] = 3000
    """Maximum number of tokens of memory that a model is shown at the root state; half as many when a new error
    appears later."""


class Instructions(Section):
    """The user's own instructions, with their text."""

    path: Path | None = None
    """The file they were read from."""
    text: str


class CustomPrompts(Section):
    """The user's own prompts that replace shipped ones, with their texts."""

    path: Path | None = None
    """The directory they were read from."""
    texts: dict[str, str]
    """The texts, by the name of the prompt."""


def _with_text(setting: object) -> object:
    if not isinstance(setting, str | Path):
        return setting
    path = _absolute(Path(setting))
    return Instructions(path=path, text=read_instructions(path))


def _with_texts(setting: object) -> object:
    if not isinstance(setting, str | Path):
        return setting
    path = _absolute(Path(setting))
    return CustomPrompts(path=path, texts=read_prompts(path))


class Settings(Section):
    """All settings of a run, with their defaults."""

    effort: Effort | None = None
    """How much is spent (`agent.efforts`): `low`, `medium`, `high` or `max`, whose settings replace the defaults. All
    other given settings, and those of a recipe, override it."""
    recipe: str | None = None
    """A published system by name (`ramify recipes`), whose settings replace the defaults. All other given
    settings override it."""
    policy: Choice = Choice(name="mutate")
    """`mutate`, `edit` (the same edits, ranked), or the name of a model. `policy = ["mutate", "openai/x"]` names this
    one and a panel."""
    panel: tuple[Choice, ...] = ()
    """Further policies on the same tree: names, or tables with a `name` and options."""
    search: Choice = Choice(name="auto")
    """A search algorithm by name. Some have other defaults for `mutate` (`agent.search.registry.SINGLE_EDITS`)."""
    value: Choice = Choice(name="tests")
    """The method that values states, by name. All methods but `tests` ask a model: the one that their options `model`
    and `base_url` name, or else the policy's. `prm` asks a trained verifier that a vLLM server serves."""
    prior: Literal["policy", "model", "ranking"] = "policy"
    """The source of a state's prior: how likely the state is to be right, before its tests run (for
    `search.prior_visits`, `search.prior_share` and `search.formula=puct`). `policy`: the likelihood of the policy's
    proposal. `model`: a score by the policy's model, which is shown the change. `ranking`: that model ranks the
    change among those made from the same state."""
    sandbox: SandboxSettings = SandboxSettings()
    budget: BudgetSettings = BudgetSettings()
    model: ModelSettings = ModelSettings()
    measure: MeasureSettings = MeasureSettings()
    gate: Literal["none", "strict"] = "none"
    """`strict`: a state is expanded only if, compared with its parent, it fixes at least one failing test and breaks
    no passing one."""
    track: bool = False
    """Whether a model that runs all tests or submits its work is told which files it changed, and which places in the
    code still use names that it removed (`agent.evaluate.references`; Python only)."""
    delegate: bool = False
    """Divide the issue into parts, search each on its own, and merge what passes (`agent.solver.delegation`); `workers`
    parts at the same time."""
    exchange: Annotated[Path, AfterValidator(_absolute)] | None = None
    """A git repository through which runs of one task exchange states; each run has a directory of its own. A run
    pushes its states that are better than the base state, and tries those of other runs as children of the base
    state. The repository is created if it does not exist."""
    begin_from: Annotated[Path, AfterValidator(_absolute)] | None = None
    """A folder of runs. The search begins from the best state that any of them reached for the same issue from the
    same base state. The turns that led to it are carried out again, without asking a model."""
    rollouts: Annotated[int, Field(ge=1)] = 1
    """Rollouts to finish in each round; with more than one, a tournament chooses among them."""
    rounds: Annotated[int, Field(ge=1)] = 1
    """Rounds of rollouts; each after the first is told what the earlier ones learned."""
    tournament: TournamentSettings = TournamentSettings()
    refine: RefineSettings = RefineSettings()
    memory: MemorySettings = MemorySettings()
    instructions: Annotated[Instructions | None, BeforeValidator(_with_text)] = None
    """A text file with your own instructions for the system prompt of the policy's model; at most 20,000 bytes. The run
    keeps its text."""
    prompts: Annotated[CustomPrompts | None, BeforeValidator(_with_texts)] = None
    """A directory with your own prompts: each file replaces the shipped prompt of the same name. The run keeps their
    texts."""
    workers: Annotated[int, Field(ge=1)] = 1
    """Expansions at the same time; with more than one, the order of nodes depends on timing."""
    seed: int = 0
    """Random seed; with one worker, the same seed gives the same run."""

    @property
    def in_rounds(self) -> bool:
        """Whether several rollouts are finished and compared."""
        return self.rollouts > 1 or self.rounds > 1

    @property
    def resolved_search(self) -> Choice:
        """The search algorithm. If none is named, rounds use independent rollouts, unless the policies propose single
        edits, which are needed in great numbers."""
        left_open = self.search.name == "auto" and not self.search.options
        independent = self.in_rounds and left_open and not self.single_edits
        return Choice(name="best_of_n", options={"n": self.rollouts}) if independent else self.search

    @property
    def lines(self) -> int | None:
        """How many lines of work have to be submitted; None: the policies propose single edits, which are not
        submitted."""
        if self.single_edits:
            return None
        count = self.search.options.get("n", 1) if self.search.name == "best_of_n" else 1
        return max(self.rollouts, int(count))

    @property
    def extra_lines(self) -> int:
        """How many lines of work may be started beyond those that have to be submitted."""
        return int(self.search.options.get("over", 0)) if self.search.name == "best_of_n" else 0

    @property
    def patience(self) -> int:
        """The number of rollouts in a row without an improvement after which the run ends: 3 with `auto`, 10 if a
        search was named."""
        return 3 if self.search.name == "auto" else 10

    @property
    def single_edits(self) -> bool:
        """Whether all policies propose single edits."""
        return self.primary_model is None

    @property
    def primary_model(self) -> str | None:
        """The first model among the policies."""
        return next(
            (choice.name for choice in (self.policy, *self.panel) if choice.name not in MODEL_FREE_POLICIES), None
        )
