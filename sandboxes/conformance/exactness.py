"""States that are exact, byte for byte, and digests that say so."""

from __future__ import annotations

from sandboxes import Provider, Snapshot
from sandboxes.conformance.given import Given, fingerprint, sh


class Exactness(Given):
    """Exact states."""

    def test_a_state_is_restored_exactly_after_anything(self, provider: Provider, base: Snapshot) -> None:
        anything = """
            rm -r pkg; mkdir -p pkg/deep/new empty2/empty3; echo x > pkg/deep/three.txt
            chmod 600 crlf.txt; chmod 700 src; ln -sf /etc/passwd link; ln -s loop loop; mkfifo pipe
            rm latin.txt; mkdir latin.txt; echo in > latin.txt/in; rm -r tests; echo file > tests
            echo y > /tmp/t; echo z > /root/.rc; echo s > /dev/shm/s; echo w > /usr/local/bin/tool
            mv data.bin moved.bin; ln moved.bin hard.bin; rm -r empty; touch -d 2001-01-01 no_newline.txt
            git -c user.name=n -c user.email=e@x.invalid commit -q -a -m second; echo 127.0.0.1 h > /etc/hosts
        """
        with provider.at(base) as box:
            original = fingerprint(box)
            assert sh(box, anything).exit_code == 0
            changed = box.snapshot()
            after = fingerprint(box)
            assert sh(box, "rm -r pkg tests latin.txt; mkdir tests; echo 2 > /tmp/t; cp /bin/sh pkg").exit_code == 0
            box.snapshot()
        assert after != original
        for snapshot, wanted in ((changed, after), (base, original), (changed, after)):
            with provider.at(snapshot) as box:
                assert fingerprint(box) == wanted

    def test_equal_states_have_equal_digests_however_they_were_reached(
        self, provider: Provider, base: Snapshot
    ) -> None:
        ways = (
            "echo a > new.txt; rm -r pkg; chmod 755 crlf.txt",
            "rm pkg/deep/one.txt pkg/deep/two.txt; rmdir pkg/deep pkg; touch x; rm x; echo b > new.txt",
        )
        with provider.at(base) as box:
            assert sh(box, ways[0]).exit_code == 0
            one = box.snapshot()
        with provider.at(base) as box:
            assert sh(box, ways[1]).exit_code == 0
            halfway = box.snapshot()
            assert (
                sh(box, "echo a > new.txt; chmod 755 crlf.txt; mkdir __pycache__; echo c > __pycache__/c").exit_code
                == 0
            )
            other = box.snapshot()
            assert sh(box, "git checkout -q -- pkg crlf.txt; rm -r new.txt __pycache__ .git/index").exit_code == 0
        assert one.digest == other.digest
        assert len({one.digest, halfway.digest, base.digest}) == 3
        assert one.id != other.id

    def test_going_back_by_hand_gives_the_base_digest(self, provider: Provider, base: Snapshot) -> None:
        with provider.at(base) as box:
            assert sh(box, "cp -r pkg keep; rm -r pkg; cp crlf.txt c").exit_code == 0
            box.snapshot()
            assert sh(box, "mv keep pkg; cat c > crlf.txt; rm c").exit_code == 0
            assert box.snapshot().digest == base.digest
            assert sh(box, "cat src/app.py; touch src/app.py").exit_code == 0
            assert box.snapshot().digest == base.digest
            assert sh(box, "mkdir nothing").exit_code == 0
            assert box.snapshot().digest != base.digest

    def test_a_directory_made_anew_has_lost_what_was_in_it(self, provider: Provider, base: Snapshot) -> None:
        found = []
        for way in ("rm -r pkg; mkdir pkg", "rm -r pkg/deep"):
            with provider.at(base) as box:
                assert sh(box, way).exit_code == 0
                found.append(box.snapshot())
        assert found[0].digest == found[1].digest != base.digest
        removed = ["pkg/deep/one.txt", "pkg/deep/two.txt"]
        assert [[change.path for change in provider.changes(base, new)] for new in found] == [removed, removed]
