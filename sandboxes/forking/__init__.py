"""Shared by the sandboxes that keep states as layers and fork them with a mount: base states, leases, guest client.

This package must not import `sandboxes.docker`, `sandboxes.namespace` or `sandboxes.commit`.
"""
