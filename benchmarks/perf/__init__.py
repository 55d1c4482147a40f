"""What Ramify costs beside the usual way of doing the same with Docker's own commands.

    python -m benchmarks.perf               everything, and one Markdown table
    python -m benchmarks.perf.fork          one script; --help says what it times
    python -m benchmarks.perf.node --repositories small,medium -n 30

    python -m benchmarks.perf.machinery     what a search with a model costs beside the model
    python -m benchmarks.perf.startup       the start of the command, beside mini-swe-agent
    python -m benchmarks.perf.journal_size  what a branch of 200 turns takes in the journal
    python -m benchmarks.perf.search_sim    what every search finds on landscapes with known optima
    python -m benchmarks.perf.played        every search on the states of one run a task
    python -m benchmarks.perf.overhead      what a batch costs an instance, and how that grows with their number
    python -m benchmarks.perf.killed        a batch that is killed three times beside one that is left alone
    python -m benchmarks.perf.page          how fluent the page of 5,000 states is in a browser
    python -m benchmarks.perf.refine_sim    what a second wave of rollouts is worth, by what is passed on to it

Both sides run in one process, interleaved in random order, so that a busy machine is busy for both: believe the ratios,
not the milliseconds. Where the usual way can be done in several manners, the quickest is taken (docker's SDK where it
beats the command line, no network, byte code warm).
"""
