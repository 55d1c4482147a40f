"""Runs the instances of a batch on many machines, as tasks of Ray.

Ray decides which machine takes an instance, assigns CPUs and memory, tries an instance again when its machine is lost,
and distributes the code and the instances. What the machines have to agree on is kept by the `Coordinator`.

- A worker searches on a disk of its own: states are overlays or volumes, which no shared file system carries. When the
  run is over, its folder without the states is sent to the batch's folder in compressed pieces that are small enough to
  travel with the call, past the object store. Nothing has to be mounted on the machines.
- A lost machine takes its runs with it. Ray begins each of them once more elsewhere. A second loss is recorded as an
  attempt that failed for outside reasons, and the next session tries the instance again. An interrupted instance also
  begins anew. What such runs left behind stays in `.unfinished/`, where it counts against the limits of the batch.
- The coordinator keeps the limits of the batch: workers reserve there before they spend.
- Secrets are read from the environment variables that `--ray-env` names, travel with the first call, and are written
  nowhere.
"""
