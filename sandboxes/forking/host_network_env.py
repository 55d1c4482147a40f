"""Network settings that set-up commands borrow from this machine: proxies, certificates, package indexes.

They are not part of a state, and no later action sees them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PREFIXES = ("PIP_", "UV_", "NPM_CONFIG_", "npm_config_")
_NAMES = frozenset(
    [
        *("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "GOPROXY", "GOSUMDB", "GONOSUMDB"),
    ]
)
_BUNDLE_NAMES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
                 "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO")  # fmt: skip
_BUNDLES = tuple(
    Path(path)
    for path in ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
)
"""The files in which distributions keep a machine's trusted certificates."""
_MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Borrowed environment variables, and the text of borrowed files by their path inside."""

    env: dict[str, str]
    files: dict[str, str]


def borrow(place: str = "/dev") -> Borrowed:
    """Collect the settings of this process and machine. Certificates and the like appear in the directory `place`."""
    env, files = {}, {}
    for name, value in os.environ.items():
        if name in _NAMES or name.startswith(_PREFIXES):
            text = _text(Path(value)) if value.startswith("/") else None
            if text is not None:
                files[f"{place}/borrowed-{name}"] = text
                env[name] = f"{place}/borrowed-{name}"
            elif not value.startswith("/"):  # the path would not exist inside
                env[name] = value
    env |= _bundle(env, files, place)
    if "PIP_CONFIG_FILE" not in env:
        env.update(_pip_config(files, place))
    for path in ("/etc/resolv.conf", "/etc/hosts"):
        text = _text(Path(path))
        if text is not None:
            files[path] = text
    return Borrowed(env, files)


def _bundle(env: Mapping[str, str], files: dict[str, str], place: str) -> dict[str, str]:
    """Add the machine's certificates to `files`; return every certificate variable that `env` lacks, set to them."""
    named = next((env[name] for name in _BUNDLE_NAMES if name in env), "")
    text = files[named] if named in files else next(filter(None, map(_text, _BUNDLES)), None)
    if text is None:
        return {}
    files[f"{place}/borrowed-certificates"] = text
    return {name: f"{place}/borrowed-certificates" for name in _BUNDLE_NAMES if name not in env}


def _pip_config(files: dict[str, str], place: str) -> dict[str, str]:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (home / "pip" / "pip.conf", Path.home() / ".pip" / "pip.conf", Path("/etc/pip.conf")):
        text = _text(path)
        if text is not None:
            files[f"{place}/borrowed-pip.conf"] = text
            return {"PIP_CONFIG_FILE": f"{place}/borrowed-pip.conf"}
    return {}


def _text(path: Path) -> str | None:
    """Return the text of a file; None if it is not a readable text file or is too large."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_FILE_BYTES:
            return None
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
