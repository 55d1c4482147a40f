"""Cluster: the instances of a batch on many machines, as tasks of Ray.

What Ray has is Ray's: which machine takes an instance, its CPUs and memory, trying it again where a machine is lost,
the code and the instances on every machine. Ours is what the machines have to agree on, the `Coordinator`.

- A worker searches on a disk of its own: states are overlays or volumes, which no shared file system carries. When the
  run is over its folder, without the states, goes to the batch's folder in compressed pieces that are small enough to
  travel with the call, past the object store. Nothing has to be mounted on the machines.
- A machine that is lost takes its runs with it: each is begun anew elsewhere, once, by Ray. The second time it is an
  attempt that the world ended, and the next session tries it again. So is what was interrupted: it begins anew. Both
  leave what they were in `.unfinished/`, where it counts against the limits of the batch.
- Limits of the batch are held at the coordinator: whoever spends reserves there before.
- Secrets are read from the environment that `--ray-env` names, travel with the first call, and are written nowhere.
"""
