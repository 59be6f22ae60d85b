"""What Grafana refuses or does not answer becomes one clear error that says what to do, without the token."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from springback.sinks.errors import (
    GrafanaAddressError,
    GrafanaRefusedError,
    GrafanaUnreachableError,
    SinkUnavailableError,
)
from springback.sinks.grafana.connection import GrafanaConnection
from tests.sinks.certificates import self_signed
from tests.sinks.grafana.grafana_stub import TOKEN, GrafanaStub, serve

FOLDERS = ("GET", "/api/folders")
SECRET = "glsa_secret"


@pytest.fixture
def stub() -> Iterator[GrafanaStub]:
    with serve(GrafanaStub()) as served:
        yield served


def folders(url: str, token: str = TOKEN, **options: Any) -> Any:
    with GrafanaConnection(url, token, **options) as grafana:
        return grafana.call("to list folders", lambda api: api.folder.get_all_folders())


def test_a_request_goes_through(stub: GrafanaStub) -> None:
    stub.folders["robots"] = "Robots"
    assert folders(f"{stub.url}/") == [{"uid": "robots", "title": "Robots"}]


def test_a_wrong_token_is_told_and_not_shown(stub: GrafanaStub) -> None:
    with pytest.raises(GrafanaRefusedError, match=r"HTTP 401.*Invalid API key.*SPRINGBACK_GRAFANA_TOKEN") as told:
        folders(stub.url, SECRET)
    assert SECRET not in str(told.value)
    assert told.value.status == 401


@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (403, {"message": "Permission denied"}, "Permission denied give it the role Editor"),
        (404, {"message": "Not found"}, "with its sub-path"),
        (409, {"message": "taken"}, "rename or remove it there"),
        (412, {"message": "changed by someone else"}, "changed by someone else"),
        (422, {"message": "nonsense"}, "nonsense"),
        (404, "<html>nginx</html>", "with its sub-path"),
        (200, "<html>Sign in</html>", "is no Grafana"),
    ],
)
def test_a_refusal_says_what_to_do(stub: GrafanaStub, status: int, said: Any, hint: str) -> None:
    stub.refusals[FOLDERS] = status, said
    with pytest.raises(GrafanaRefusedError) as told:
        folders(stub.url)
    message = str(told.value)
    assert all(word in message for word in hint.split())
    assert stub.url in message
    assert not isinstance(told.value, SinkUnavailableError)


@pytest.mark.parametrize(
    ("status", "said"), [(429, {"message": "slow down"}), (500, {"message": "slow down"}), (502, "<html>slow down")]
)
def test_what_may_pass_may_be_tried_again(stub: GrafanaStub, status: int, said: Any) -> None:
    stub.refusals[FOLDERS] = status, said
    with pytest.raises(GrafanaUnreachableError, match=f"cannot answer now .HTTP {status}"):
        folders(stub.url)


def test_what_is_not_there_is_none_only_if_grafana_says_so(stub: GrafanaStub) -> None:
    with GrafanaConnection(stub.url, TOKEN) as grafana:
        assert grafana.find("to look", lambda api: api.dashboard.get_dashboard("none")) is None
        stub.refusals["GET", "/api/dashboards"] = 404, "<html>nginx</html>"
        with pytest.raises(GrafanaRefusedError, match="sub-path"):
            grafana.find("to look", lambda api: api.dashboard.get_dashboard("none"))


def test_nobody_there(stub: GrafanaStub) -> None:
    with pytest.raises(GrafanaUnreachableError, match=r"does not answer at \S+:1 \(Connection refused\)"):
        folders("http://127.0.0.1:1")
    with pytest.raises(GrafanaUnreachableError, match=r"does not answer at http://nowhere\.invalid"):
        folders("http://nowhere.invalid")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("127.0.0.1:3000", "expected http://HOST:PORT"),
        ("ftp://grafana", "expected http://HOST:PORT"),
        ("http://", "expected http://HOST:PORT"),
        (f"http://admin:{SECRET}@grafana:3000", "must carry no user and password"),
    ],
)
def test_an_address_that_is_none(url: str, told: str) -> None:
    with pytest.raises(GrafanaAddressError, match=told) as error:
        GrafanaConnection(url, TOKEN)
    assert SECRET not in str(error.value)


def test_a_grafana_under_a_sub_path(stub: GrafanaStub) -> None:
    with pytest.raises(GrafanaRefusedError, match="sub-path"):
        folders(f"{stub.url}/grafana/")
    assert stub.requests == ["GET /grafana/api/folders"]
    with GrafanaConnection(f"{stub.url}/grafana", TOKEN) as grafana:
        assert grafana.address("/grafana/d/x") == f"{stub.url}/grafana/d/x"


def test_a_certificate_of_an_own_authority(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with serve(GrafanaStub(), tls=context) as stub:
        stub.folders["robots"] = "Robots"
        with pytest.raises(GrafanaUnreachableError, match=r"is not trusted.*--ca-file"):
            folders(stub.url)
        assert len(folders(stub.url, ca_file=certificate)) == 1
