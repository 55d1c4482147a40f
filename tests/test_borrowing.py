"""What set-up commands borrow from this machine: all that the network takes, and nothing of it stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandboxes import Workspace
from sandboxes.conformance import LIMITS, sh
from sandboxes.conformance.given import said
from sandboxes.forking.host_network_env import borrow
from sandboxes.namespace.provider import namespace_provider

BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
CERTIFICATE = "-----BEGIN CERTIFICATE----- of this machine alone"


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name in BUNDLES or name.startswith(("PIP_", "UV_", "npm_config_"))]:
        monkeypatch.delenv(name)
    path = tmp_path / "machine.pem"
    path.write_text(CERTIFICATE)
    return path


@pytest.mark.parametrize("name", BUNDLES)
def test_certificates_named_once_are_lent_under_every_name(
    name: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(certificate))
    lent = borrow()
    assert {lent.files[lent.env[each]] for each in BUNDLES} == {CERTIFICATE}


def test_the_certificates_that_the_machine_trusts_are_lent_where_none_is_named(certificate: Path) -> None:
    trusted = Path("/etc/ssl/certs/ca-certificates.crt")
    if not trusted.is_file():
        pytest.skip("this machine keeps them elsewhere")
    lent = borrow()
    assert {lent.files[lent.env[name]] for name in BUNDLES} == {trusted.read_text()}


def test_a_path_that_is_not_lent_is_not_named(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(certificate.parent))
    monkeypatch.setenv("PIP_CACHE_DIR", "/var/cache/pip")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.invalid/simple")
    lent = borrow()
    assert not {"SSL_CERT_DIR", "PIP_CACHE_DIR"} & lent.env.keys()
    assert lent.env["PIP_INDEX_URL"] == "https://index.invalid/simple"


@pytest.mark.namespace
@pytest.mark.slow
def test_what_is_lent_is_there_for_set_up_and_in_no_state_and_no_later_action(
    namespaces: Path, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for name in PROXIES:
        monkeypatch.setenv(name, "http://lent.invalid:3128")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    bundles = " && ".join(f'grep -q BEGIN "${name}"' for name in BUNDLES)
    proxies = " && ".join(f'test "${name}" = http://lent.invalid:3128' for name in PROXIES)
    built = f"{bundles} && {proxies} && echo built > /opt/built"
    workspace = Workspace(path=checkout, environment=(built,), setup=(f"{bundles} && {proxies} && echo set up > here",))
    with namespace_provider(namespaces / "lent", LIMITS) as provider, provider.at(provider.create(workspace)) as box:
        assert said(box, "cat here /opt/built") == "set up\nbuilt"
        names = "|".join((*BUNDLES, *PROXIES, "lent.invalid", "borrowed"))
        assert said(box, f"env | grep -cE '{names}' || true") == "0"
        said_so = "'of this machine alone'"
        search = f"grep -rls {said_so} /opt /tmp /etc /dev /var /run .; ls /dev | grep borrow"
        search += f"; find /root -xdev -type f -exec grep -ls {said_so} {{}} +"  # a Python may be mounted below it
        found = sh(box, search)
        assert not found.timed_out
        assert found.stdout == b""
    states = [path for path in (namespaces / "lent").rglob("*") if path.is_file() and not path.is_symlink()]
    assert [path for path in states if CERTIFICATE.encode() in path.read_bytes()] == []
