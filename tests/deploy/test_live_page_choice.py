"""Whether `up` and `demo` run the live page, and what they say of it."""

import importlib.util

import pytest

from springback.deploy.local_stack import LocalStack, live_page_installed, live_page_line


def test_without_its_extra_the_stack_goes_on_without_the_page_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert live_page_installed()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not live_page_installed()
    assert "pip install 'springback[live]'" in live_page_line(LocalStack())


def test_the_address_of_the_page_is_told() -> None:
    stack = LocalStack(live_port=0)
    stack._ready["live"] = {"live": "http://127.0.0.1:4712/"}
    assert live_page_line(stack) == "Live:    http://127.0.0.1:4712/"
