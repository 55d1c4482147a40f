"""What the sandboxes share that keep states as layers and fork them by a mount: base states, leases, the guest's
client.

It must not import `sandboxes.docker`, `sandboxes.namespace` or `sandboxes.commit`.
"""
