"""What is easily lost of a state: attributes, owners, times, names of one file, holes."""

from __future__ import annotations

import pytest

from sandboxes import Provider, Snapshot
from sandboxes.conformance.given import Given, fingerprint, said

_SET = "python3 -c \"import os; os.setxattr('{0}', 'user.note', b'{1}')\""
_GET = "python3 -c \"import os; print(os.getxattr('{0}', 'user.note').decode())\""
_TIME = "stat -c %.9Y {}"


def _after(provider: Provider, start: Snapshot, script: str) -> tuple[Snapshot, str]:
    """The state that a script leaves, and what it looked like to the fork that ran it."""
    with provider.at(start) as box:
        said(box, script)
        seen = fingerprint(box)
        return box.snapshot(), seen


def _look(provider: Provider, snapshot: Snapshot) -> str:
    with provider.at(snapshot) as box:
        return fingerprint(box)


def _ask(provider: Provider, snapshot: Snapshot, script: str) -> str:
    with provider.at(snapshot) as box:
        return said(box, script)


class Metadata(Given):
    """What is easily lost of a state."""

    @pytest.mark.parametrize("path", ["crlf.txt", "pkg/deep", ".", "/etc", "/"])
    def test_a_change_of_an_extended_attribute_only_is_kept(
        self, provider: Provider, base: Snapshot, path: str
    ) -> None:
        noted, seen = _after(
            provider, base, f"touch -r {path} /tmp/time; {_SET.format(path, 'kept')}; touch -r /tmp/time {path}"
        )
        assert _ask(provider, noted, _GET.format(path)) == "kept"
        assert _look(provider, noted) == seen

    def test_an_extended_attribute_counts_in_the_digest(self, provider: Provider, base: Snapshot) -> None:
        one, other, again = (_after(provider, base, _SET.format("crlf.txt", text))[0] for text in ("a", "b", "a"))
        assert len({base.digest, one.digest, other.digest}) == 3
        assert one.digest == again.digest
        assert [change.path for change in provider.changes(one, other)] == ["crlf.txt"]
        assert provider.diff(one, other) == b""

    def test_the_time_of_a_directory_is_kept(self, provider: Provider, base: Snapshot) -> None:
        for path in ("pkg", "pkg/deep", ".", "/tmp", "/", "/etc"):
            aged, seen = _after(provider, base, f"touch -d 2001-02-03T04:05:06.123456789 {path}")
            assert _ask(provider, aged, _TIME.format(path)) == "981173106.123456789"
            assert (aged.digest, _look(provider, aged)) == (base.digest, seen)

    def test_the_time_of_a_directory_survives_what_changes_nothing_in_it(
        self, provider: Provider, base: Snapshot
    ) -> None:
        with provider.at(base) as box:
            said(
                box,
                "touch -d 2001-02-03 pkg/deep pkg; chmod 644 pkg/deep/one.txt; exec 9<>pkg/deep/two.txt; touch x; rm x",
            )
            seen = fingerprint(box)
            quiet = box.snapshot()
        assert _look(provider, quiet) == seen
        assert quiet.digest == base.digest

    def test_a_time_that_went_back_to_the_base_is_kept(self, provider: Provider, base: Snapshot) -> None:
        before = _ask(provider, base, _TIME.format("crlf.txt"))
        touched, _ = _after(provider, base, "touch -d 2030-01-01 crlf.txt")
        back, seen = _after(provider, touched, f"touch -d @{before} crlf.txt")
        assert _ask(provider, back, _TIME.format("crlf.txt")) == before
        assert _look(provider, back) == seen

    def test_mounting_alone_changes_no_time(self, provider: Provider, base: Snapshot) -> None:
        assert _look(provider, base) == _look(provider, base)
        roots = "stat -c '%n %.9Y %a %u' / /usr /workspace"
        assert _ask(provider, base, f"sleep 0.01; {roots}") == _ask(provider, base, roots)

    def test_names_of_one_file_stay_names_of_one_file(self, provider: Provider, base: Snapshot) -> None:
        linked, seen = _after(provider, base, "ln crlf.txt /tmp/one; ln crlf.txt two; touch -r latin.txt crlf.txt")
        assert _look(provider, linked) == seen
        assert _ask(provider, linked, "find . /tmp/one -samefile two | sort") == "./crlf.txt\n./two\n/tmp/one"
        copied, _ = _after(provider, base, "cp -p crlf.txt /tmp/one; cp -p crlf.txt two")
        paired, _ = _after(provider, base, "ln crlf.txt two; cp -p crlf.txt /tmp/one")
        assert len({linked.digest, copied.digest, paired.digest}) == 3

    def test_a_link_to_an_unchanged_file_is_a_link(self, provider: Provider, base: Snapshot) -> None:
        """What `ln` makes of a file differs from what was there in nothing but its second name."""
        linked, seen = _after(provider, base, "ln pkg/deep/one.txt pkg/deep/again.txt")
        assert _look(provider, linked) == seen
        assert _ask(provider, linked, "find pkg -samefile pkg/deep/one.txt | wc -l") == "2"
        parted, seen = _after(provider, linked, "echo x >> pkg/deep/one.txt; rm pkg/deep/again.txt; touch pkg/deep/new")
        assert _look(provider, parted) == seen

    def test_holes_stay_holes(self, provider: Provider, base: Snapshot) -> None:
        sparse, seen = _after(
            provider, base, "truncate -s 12M huge; echo x | dd of=holes bs=1 seek=5000000 conv=notrunc"
        )
        assert _look(provider, sparse) == seen
        assert _ask(provider, sparse, "stat -c '%s %b' huge; stat -c %s holes") == "12582912 0\n5000002"
