"""Measures what Ramify costs, compared with the usual way of doing the same with Docker's own commands.

    python -m benchmarks.perf               everything, in one Markdown table
    python -m benchmarks.perf.fork          one script; --help says what it times
    python -m benchmarks.perf.node --repositories small,medium -n 30

    python -m benchmarks.perf.startup       the start of the command, compared with mini-swe-agent
    python -m benchmarks.perf.search_sim    what every search finds on landscapes with known optima
    python -m benchmarks.perf.algorithms    every search on the same tasks, by `mutate`
    python -m benchmarks.perf.page          how fluent the page of 5,000 states is in a browser
    python -m benchmarks.perf.second_round  what a second round changes, by `mutate` and by a simulated developer
    python -m benchmarks.perf.lines         what lines of work in graded batches came to, and what their judge said
    python -m benchmarks.perf.combined      whether it pays to fuse branches, on tasks with two bugs
    python -m benchmarks.perf.refactorings  refactorings like those of RefactorBench
    python -m benchmarks.perf.selection     how often the right one of several real patches is chosen

Both sides run in one process, interleaved in random order, so that other load on the machine affects both: believe the
ratios, not the milliseconds. If there are several usual ways, the quickest is taken (docker's SDK where it beats the
command line, no network, warm byte code).
"""
