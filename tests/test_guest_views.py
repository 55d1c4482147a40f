"""What the guest looks at again and again is kept open, and is what it would see anew."""

from __future__ import annotations

import os

from sandboxes.guest.store import Store
from sandboxes.guest.views import KEPT, Bases


def test_each_base_is_seen_as_itself_however_many_were_looked_at(tmp_path):
    bases = Bases(Store(str(tmp_path / "store")), str(tmp_path))
    mounts = [{"chain": [], "base": 0, "lower": str(tmp_path / f"base-{number}")} for number in range(2 * KEPT)]
    for mount in mounts:
        os.mkdir(mount["lower"])
        (tmp_path / mount["lower"] / os.path.basename(mount["lower"])).touch()
    before = len(os.listdir("/proc/self/fd"))
    for one in mounts:
        for other in mounts:
            with bases.look_at(one) as root, bases.look_at(other) as second:
                assert os.listdir(root) == [os.path.basename(one["lower"])]
                assert os.listdir(second) == [os.path.basename(other["lower"])]
    assert len(os.listdir("/proc/self/fd")) == before + KEPT


def test_what_is_no_base_is_looked_at_for_the_moment_only(tmp_path):
    bases = Bases(Store(str(tmp_path / "store")), str(tmp_path))
    (tmp_path / "lower").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    with bases.look_at({"chain": [], "base": -1, "lower": str(tmp_path / "lower")}) as root:
        assert os.listdir(root) == []
    assert len(os.listdir("/proc/self/fd")) == before
