"""The only Ramify program inside a sandbox: it keeps states, forks them, and runs and kills commands in the forks.

It needs only Python 3.8 and a Linux kernel with overlay mounts in user namespaces (5.11). Start it with one argument, a
JSON object, and exchange frames over its stdin and stdout. When stdin is closed or the started process dies, everything
that the guest ever started ends, and nothing stays mounted.

    {"store": DIR, "environments": DIR,      writable directories on disk for states and shared environments
     "network": false,                       true: commands share the caller's network; else each has an empty one
     "memory_events": FILE, "pids_events": FILE}   optional: cgroup counters that show why a command ended

A frame is two big-endian 32-bit lengths, a JSON header of the first length and a payload of the second. The guest sends
`{"guest": 1}` first, and then one reply per request. A failure is `{"error": KIND, "message": TEXT}`, with KIND one of
unavailable, missing, full, lost, damaged, template, sandbox, or os (then also `errno` and `path`).

Without a lease (`area` is "store", the default, or "environments"):

    import   mounts [[TARGET, LOWER]], workdir; followed by tar bytes in frames {} + payload, ended by an empty payload
             -> {"layer": DIR relative to the store, "digest": HEX}; a layer that holds the workspace at its path
    make_root area, mounts, workdir, env, key TEXT, environment ID or null, layer or null
             -> {"id", "digest"}; a state without changes; `key` identifies the content of its lower directories
    make_base area, id, as ID or null, tracked [PATH] or null, exclude TEXT
             -> {"id", "digest"}; the same state as a base that later states are compared with
    info     area, id -> {"id", "digest", "workdir", "env"}
    compare  old, new, rules -> {"changes": [[PATH, OLD, NEW]], "exclude", "tracked"}, and with rules "ignores" and
             "nested"; OLD and NEW are null or [KIND, MODE, SIZE]
    contents old, new, paths -> {} + payload: for each path its old content, then its new content, of SIZE bytes each
    discard  area, id -> {}; removes the state and the layers that no other state needs
    lease    area, id, outside ID or null, put_back [PATH], borrowed {PATH: TEXT}, disk_bytes, seal, check, template
             -> {"workdir", "env"}
             `outside`: take everything outside the workspace, and the put_back paths in it, from that state;
             `borrowed`: files that are visible during this lease but are not part of the state;
             `seal`: a snapshot records a digest of every path that its layers touch, as the fork sees it; `check`: as
             `seal`, and the lease is refused if the fork does not match the recorded digest;
             `template`: whether the lease accepts orders

    template id, argv, env, cwd, check; payload: the program's stdin -> {}; start a template (see `door.py`) in a fork
             of that state; it replaces the guest's previous template

With a lease:

    exec     argv, cwd, env, timeout_s, output_bytes, memory_bytes, pids, disk_bytes; payload: stdin
             -> {"code", "stdout", "stdout_bytes", "stderr_bytes", "duration_s", "timed_out", "limit"};
             payload: `stdout` bytes of stdout, then stderr. A time-out ends the lease.
             `ordered`: the template runs the request instead, and stdin is the order
    read     path, max_bytes -> {} + payload
    write    path, executable true, false or null; payload -> {}
    remove   path -> {}
    snapshot -> {"id", "digest"}; ends the lease
    close    -> {}; ends the lease and discards its changes

On disk: `layers/ID/N` is the frozen upper directory of mount N, `flat/HASH/layer` several layers merged into one,
`states/ID.json` a state, `imports/ID` a copied workspace, and `leases/ID` the directory of a live guest, which is
removed once nobody holds its lock.
"""
