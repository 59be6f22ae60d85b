"""The judge's process around its sessions: no broker, and settings that cannot work."""

import asyncio
import socket

import pytest

from springback.stream_processors.errors import SettingsError
from springback.stream_processors.judging.process import judge_steps
from springback.stream_processors.settings import load_settings


def test_a_broker_that_is_away_is_waited_for_until_told_to_stop(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(address: str) -> None:
        judge = {"base_url": "http://127.0.0.1:1/v1", "model": "none"}
        settings = load_settings(environment={}, overrides={"kafka": {"bootstrap": address}, "judge": judge})
        stop = asyncio.Event()
        task = asyncio.create_task(judge_steps(settings, stop))
        async with asyncio.timeout(20):
            while "broker_fault kind=address" not in caplog.text:
                await asyncio.sleep(0.02)
                assert not task.done()
            stop.set()
            await task

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        asyncio.run(scenario(f"127.0.0.1:{taken.getsockname()[1]}"))


def test_it_needs_an_endpoint_and_a_model() -> None:
    with pytest.raises(SettingsError, match=r"judge.base_url and judge.model are needed"):
        asyncio.run(judge_steps(load_settings(environment={}), asyncio.Event()))


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("BASE_URL", "ftp://host/v1", "not an address"),
        ("BASE_URL", "https://user:sk-secret@host/v1", "belongs in SPRINGBACK_JUDGE_API_KEY"),
        ("BASE_URL", "https://host/v1?key=sk-secret", "belongs in SPRINGBACK_JUDGE_API_KEY"),
        ("API_KEY", "sk-secret", "judge.api_key: not known; did you mean api_key_file"),
        ("DEADLINE_S", "1", "judge.deadline_s is 1.0, expected a finite number of at least 5.0"),
        ("BACKOFF_S", "inf", "judge.backoff_s is inf, expected a finite number of at least 0.001"),
        ("BACKOFF_S", "nan", "judge.backoff_s is nan, expected a finite number of at least 0.001"),
        ("CALLS_PER_MINUTE", "1", "judge.calls_per_minute is 1, expected a finite number of at least 2"),
        ("WHICH", "some", "judge.which is 'some', expected 'events', 'every' or 'nth'"),
    ],
)
def test_settings_of_the_judge_are_checked_and_tell_no_secret(variable: str, value: str, told: str) -> None:
    with pytest.raises(SettingsError, match=told) as raised:
        load_settings(environment={f"SPRINGBACK_JUDGE__{variable}": value})
    assert "secret" not in str(raised.value)
