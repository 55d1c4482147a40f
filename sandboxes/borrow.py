"""What set-up commands borrow from this machine to reach the network: proxies, certificates, package indexes.

Nothing of it is part of a state, and no later action sees it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Borrowed", "borrow"]

_PREFIXES = ("PIP_", "UV_", "NPM_CONFIG_", "npm_config_")
_NAMES = frozenset(
    [
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "GOPROXY", "GOSUMDB", "GONOSUMDB"),
    ]
)
_MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Environment variables, and files by the path at which they are seen."""

    env: dict[str, str]
    files: dict[str, str]


def borrow() -> Borrowed:
    """What this process's environment and machine offer."""
    env, files = {}, {}
    for name, value in os.environ.items():
        if name in _NAMES or name.startswith(_PREFIXES):
            text = _text(Path(value)) if value.startswith("/") else None
            env[name] = value if text is None else f"/dev/borrowed-{name}"
            if text is not None:
                files[env[name]] = text
    if "PIP_CONFIG_FILE" not in env:
        env.update(_pip_config(files))
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        text = _text(Path(path))
        if text is not None:
            files[path] = text
    return Borrowed(env, files)


def _pip_config(files: dict[str, str]) -> dict[str, str]:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (home / "pip" / "pip.conf", Path.home() / ".pip" / "pip.conf", Path("/etc/pip.conf")):
        text = _text(path)
        if text is not None:
            files["/dev/borrowed-pip.conf"] = text
            return {"PIP_CONFIG_FILE": "/dev/borrowed-pip.conf"}
    return {}


def _text(path: Path) -> str | None:
    """None when it is no file of text that we may read."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return None
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
