"""What every provider has to do, as tests: subclass a contract and supply its two fixtures.

class TestMine(SandboxContract):
    @pytest.fixture(scope="class")
    @classmethod
    def reopen(cls, tmp_path_factory): ...   # a function without arguments that makes a provider with LIMITS
    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory): return Workspace(path=sample(tmp_path_factory.mktemp("here") / "checkout"))
"""

from __future__ import annotations

from sandboxes.conformance.commands import Commands
from sandboxes.conformance.exactness import Exactness
from sandboxes.conformance.files import Files
from sandboxes.conformance.given import LIMITS, fingerprint, sh
from sandboxes.conformance.hidden import Hidden
from sandboxes.conformance.kernel import Kernel
from sandboxes.conformance.leaks import Leaks
from sandboxes.conformance.limits import Bounded
from sandboxes.conformance.metadata import Metadata
from sandboxes.conformance.network import Network
from sandboxes.conformance.patches import Patches
from sandboxes.conformance.preparing import Preparing
from sandboxes.conformance.sample import sample
from sandboxes.conformance.scratch import Scratch
from sandboxes.conformance.serving import Serving
from sandboxes.conformance.states import States
from sandboxes.conformance.templates import Templates

__all__ = ["LIMITS", "ExactContract", "SandboxContract", "fingerprint", "sample", "sh"]


class SandboxContract(Commands, Files, States, Patches, Scratch, Preparing):
    """What every provider promises, however it keeps its states."""


class ExactContract(SandboxContract, Exactness, Metadata, Leaks, Bounded, Hidden, Network, Kernel, Serving, Templates):
    """What a provider promises whose tier calls its states exact: they are, and no action gets out of its own."""
