"""The `namespace` sandbox: Linux user namespaces and cgroups of this machine, without an engine."""
