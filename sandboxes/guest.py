"""The one program that runs inside: it keeps states, forks them, runs commands in the forks, and kills.

It needs nothing but Python 3.8 and a Linux kernel with overlay mounts in user namespaces (5.11). Start it with one
argument, a JSON object, and speak frames on its stdin and stdout; a closed stdin, or the death of the process that was
started, ends everything it ever started and leaves nothing mounted.

    {"store": DIR, "environments": DIR,      where states and shared environments live, on disk, writable
     "network": false,                       true: share the caller's network instead of an own, empty one
     "memory_events": FILE, "pids_events": FILE}   optional: cgroup counters that tell why a command ended

A frame is two big-endian 32-bit lengths, a JSON header of the first length, a payload of the second. The guest speaks
first: `{"guest": 1}`. Then one reply a request. A failure is `{"error": KIND, "message": TEXT}` with KIND one of
unavailable, missing, full, lost, sandbox, or os (then also `errno` and `path`).

Without a lease (`area` is "store" or "environments", "store" when left out):

    import   followed by tar bytes in frames {} + payload, ended by an empty payload
             -> {"lower": DIR relative to the store, "digest": HEX, "skipped": [PATH]}
    found    area, mounts [[TARGET, LOWER]], workdir, env, key TEXT, tracked, exclude, environment ID or null
             -> {"id", "digest"}; a state with nothing changed yet, `key` names its lower directories' content
    settle   area, id, as ID or null -> {"id", "digest"}; the same state as a base that later ones are compared with
    info     area, id -> {"id", "digest", "workdir", "env", "depth"}
    compare  old, new, content -> {"changes": [[PATH, OLD, NEW]], "ignores", "exclude", "nested", "tracked"};
             OLD and NEW are null or [KIND, MODE, SIZE]; with content the payload holds each old, then new, of SIZE bytes
    discard  area, id -> {}; removes the state and the layers that no other state needs
    lease    area, id, outside ID or null, put_back [PATH], borrowed {PATH: TEXT} -> {"workdir", "env"}
             `outside`: take everything but the workspace from that state, and in it the put_back paths;
             `borrowed`: files seen during this lease that are no part of the state

With a lease:

    exec     argv, cwd, env, timeout_s, output_bytes, memory_bytes, pids, disk_bytes; payload: stdin
             -> {"code", "stdout", "stdout_bytes", "stderr_bytes", "duration_s", "timed_out", "limit"};
             payload: `stdout` bytes of stdout, then stderr. After a time-out or a disk kill the lease is over.
    read     path, max_bytes -> {} + payload
    write    path, executable true, false or null; payload -> {}
    remove   path -> {}
    snapshot -> {"id", "digest"}; the lease is over
    close    -> {}; the lease is over, its changes are gone

On disk: `layers/ID/N` is the frozen upper directory of mount N, `states/ID.json` a state, `imports/ID` a copied
workspace, `leases/ID` a live guest's own, removed when its lock is free.
"""
