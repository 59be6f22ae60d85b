import base64
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springback.sinks.basic_auth import BasicAuth, hashed
from springback.sinks.errors import AuthFileError
from tests.examples import examples

USERS = {"ops": "s3cret:with$signs", "prometheus": hashed("scrape", 1000)}


def header(user: str, password: str, scheme: str = "Basic") -> str:
    return f"{scheme} " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("times", [1, 3])
def test_a_user_is_admitted_by_the_password_again_and_again(times: int) -> None:
    auth = BasicAuth(USERS)
    for _ in range(times):
        assert auth.admits(header("ops", "s3cret:with$signs"))
        assert auth.admits(header("prometheus", "scrape", "basic"))
        assert not auth.admits(header("ops", "scrape"))
        assert not auth.admits(header("prometheus", USERS["prometheus"]))
        assert not auth.admits(header("nobody", "s3cret:with$signs"))


@pytest.mark.parametrize(
    "value",
    [None, "", "Basic", "Basic ", "Basic !", "Basic b3Bz", "Bearer b3BzOg==", "Basic gICA", "Basic\x00b3BzOg=="],
)
def test_anything_else_is_not(value: str | None) -> None:
    assert not BasicAuth(USERS).admits(value)


@settings(max_examples=examples(50))
@given(st.text())
def test_no_header_breaks_it(value: str) -> None:
    assert not BasicAuth(USERS).admits(value)


def test_a_file_of_users(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"# who may scrape\n\nops: spaces count \nprometheus:{USERS['prometheus']}\n")
    auth = BasicAuth.of_file(file)
    assert auth.admits(header("ops", " spaces count "))
    assert auth.admits(header("prometheus", "scrape"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no user"),
        ("# nothing\n", "names no user"),
        ("ops:s3cret\nalone-s3cret\n", "Line 2"),
        (":s3cret\n", "Line 1"),
        ("ops:\n", "Line 1"),
        ("ops:s3cret\nops:s3cret-2\n", "Line 2"),
        ("ops:pbkdf2_sha256$s3cret\n", "holds a hash"),
        ("ops:pbkdf2_sha256$99999999$s3cret$AAAA\n", "holds a hash"),
        ("ops:pbkdf2_sha256$1000$s3cret$AAAA\n", "holds a hash"),
    ],
)
def test_a_file_that_is_none_is_told_without_quoting_it(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "users"
    file.write_text(text)
    with pytest.raises(AuthFileError, match=told) as caught:
        BasicAuth.of_file(file)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
