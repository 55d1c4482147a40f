"""The only program of ours inside a sandbox: it keeps states, forks them, and runs and kills commands in the forks.

It needs nothing but Python 3.8 and a Linux kernel with overlay mounts in user namespaces (5.11). Start it with one
argument, a JSON object, and speak frames on its stdin and stdout; a closed stdin, or the death of the process that was
started, ends everything it ever started and leaves nothing mounted.

    {"store": DIR, "environments": DIR,      where states and shared environments live, on disk, writable
     "network": false,                       true: commands share the caller's network; else each has an empty one
     "memory_events": FILE, "pids_events": FILE}   optional: cgroup counters that tell why a command ended

A frame is two big-endian 32-bit lengths, a JSON header of the first length, a payload of the second. The guest speaks
first: `{"guest": 1}`. Then one reply a request. A failure is `{"error": KIND, "message": TEXT}` with KIND one of
unavailable, missing, full, lost, damaged, template, sandbox, or os (then also `errno` and `path`).

Without a lease (`area` is "store" or "environments", "store" when left out):

    import   mounts [[TARGET, LOWER]], workdir; followed by tar bytes in frames {} + payload, ended by an empty payload
             -> {"layer": DIR relative to the store, "digest": HEX}; a layer that holds the workspace at its place
    found    area, mounts, workdir, env, key TEXT, environment ID or null, layer or null
             -> {"id", "digest"}; a state with nothing changed yet, `key` names its lower directories' content
    make_base area, id, as ID or null, tracked [PATH] or null, exclude TEXT
             -> {"id", "digest"}; the same state as a base that later ones are compared with
    info     area, id -> {"id", "digest", "workdir", "env"}
    compare  old, new, rules -> {"changes": [[PATH, OLD, NEW]], "exclude", "tracked"}, and with rules "ignores" and
             "nested"; OLD and NEW are null or [KIND, MODE, SIZE]
    contents old, new, paths -> {} + payload: of each path what it held, then what it holds, in SIZE bytes
    discard  area, id -> {}; removes the state and the layers that no other state needs
    lease    area, id, outside ID or null, put_back [PATH], borrowed {PATH: TEXT}, disk_bytes, seal, check, template
             -> {"workdir", "env"}
             `outside`: take everything but the workspace from that state, and in it the put_back paths;
             `borrowed`: files seen during this lease that are no part of the state;
             `seal`: a snapshot notes a digest of all that its layers touch, as the fork sees it; `check`: that too, and
             the lease is refused where the fork does not show what was noted;
             `template`: whether orders may be given

    template id, argv, env, cwd, check; payload: the program's stdin -> {}; start a template (see `door.py`) in a fork
             of that state, in the place of the guest's one before

With a lease:

    exec     argv, cwd, env, timeout_s, output_bytes, memory_bytes, pids, disk_bytes; payload: stdin
             -> {"code", "stdout", "stdout_bytes", "stderr_bytes", "duration_s", "timed_out", "limit"};
             payload: `stdout` bytes of stdout, then stderr. After a time-out the lease is over.
             `ordered`: the template runs it instead, and stdin is the order
    read     path, max_bytes -> {} + payload
    write    path, executable true, false or null; payload -> {}
    remove   path -> {}
    snapshot -> {"id", "digest"}; the lease is over
    close    -> {}; the lease is over, its changes are gone

On disk: `layers/ID/N` is the frozen upper directory of mount N, `flat/HASH/layer` many of them as one, `states/ID.json`
a state, `imports/ID` a copied workspace, `leases/ID` a live guest's own, removed when its lock is free.
"""
