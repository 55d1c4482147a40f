"""Runs the instances of a batch on many machines, as tasks of Ray.

Ray decides which machine takes an instance, assigns CPUs and memory, retries an instance when its machine is lost, and
distributes the code and the instances. The `Coordinator` keeps what the machines have to agree on.

- A worker searches on a disk of its own, because states are overlays or volumes, which shared file systems do not
  support. When the run is over, its folder (without the states) is sent to the batch's folder in compressed pieces that
  are small enough to travel with the call and bypass the object store. Nothing has to be mounted on the machines.
- The runs on a lost machine are lost too. Ray restarts each of them once on another machine. A second loss is recorded
  as an attempt that failed for outside reasons, and the next session tries the instance again. An interrupted instance
  also starts over. What such runs left behind stays in `.unfinished/`, where it counts against the batch's limits.
- The coordinator keeps the limits of the batch: workers reserve there before they spend.
- Secrets are read from the environment variables that `--ray-env` names, travel with the first call, and are never
  written to disk.
"""
