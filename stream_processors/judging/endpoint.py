"""One call to an OpenAI-compatible endpoint, over HTTP."""

import asyncio
import email.utils
import os
import time
from types import TracebackType
from typing import Any, Self

import httpx

from springback.producers.secret_files import read_secret
from springback.stream_processors.errors import SettingsError
from springback.stream_processors.judging.chat import answer_format
from springback.stream_processors.judging.counts import EndpointError
from springback.stream_processors.judging.settings import KEY_VARIABLE, JudgeSettings

_LARGEST_BODY = 256 * 1024
_WORTH_ANOTHER_TRY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class JudgeEndpoint:
    """The endpoint that the settings name; a context manager that closes the connections at its end.

    Args:
        settings: the judge's settings.

    Raises:
        SettingsError: address or model are not given, or the key cannot be read.
    """

    def __init__(self, settings: JudgeSettings) -> None:
        if not settings.base_url or not settings.model:
            message = (
                "judge.base_url and judge.model are needed (--endpoint, --model): they say which OpenAI-compatible "
                "endpoint is asked"
            )
            raise SettingsError(message)
        self._url = settings.base_url.rstrip("/") + "/chat/completions"
        self._timeout_s = settings.call_timeout_s
        self._fields: dict[str, Any] = settings.parameters | {"model": settings.model}
        self._fields |= answer_format(settings.answer_format)
        key = read_api_key(settings)
        headers = {"Accept-Encoding": "identity"}  # a compressed answer cannot be bounded before it is unpacked
        if key:
            headers["Authorization"] = f"Bearer {key}"
        limits = httpx.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency)
        self._client = httpx.AsyncClient(headers=headers, limits=limits, timeout=settings.call_timeout_s)

    async def __aenter__(self) -> Self:
        """The endpoint, ready for calls."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def complete(self, messages: list[dict[str, str]]) -> bytes:
        """The body of the answer to these messages.

        Raises:
            EndpointError: there is none within the call's timeout; the message repeats nothing that the endpoint sent.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(self._fields | {"messages": messages})
        except (TimeoutError, httpx.TimeoutException) as error:
            message = f"No answer within {self._timeout_s:g} s."
            raise EndpointError(cause="timed_out", message=message, again=True) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            message = f"The endpoint cannot be called: {type(error).__name__}."
            raise EndpointError(cause="failed", message=message, again=True) from error

    async def _post(self, content: dict[str, Any]) -> bytes:
        async with self._client.stream("POST", self._url, json=content) as response:
            if response.status_code != 200:
                raise _unwanted_status(response)
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _LARGEST_BODY:
                    message = f"The answer is larger than {_LARGEST_BODY} bytes."
                    raise EndpointError(cause="refused_malformed", message=message, again=False)
            return bytes(body)


def read_api_key(settings: JudgeSettings) -> str:
    """The endpoint's key: from the file, else from the environment, else empty.

    Raises:
        SettingsError: the file cannot be read, or the key has characters that no HTTP header may have.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if settings.api_key_file:
        try:
            key = read_secret(settings.api_key_file, "the judge's key")
        except (OSError, UnicodeDecodeError) as error:
            message = f"judge.api_key_file: cannot read {settings.api_key_file!r} ({type(error).__name__})."
            raise SettingsError(message) from error
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        message = "The judge's key has characters that no HTTP header may have."
        raise SettingsError(message)
    return key


def retry_after_s(text: str, now_s: float) -> float | None:
    """What a Retry-After header asks for, in seconds from now, be it a number or a date; None where it is neither.

    >>> retry_after_s("7", 0.0), retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 45.0), retry_after_s("soon", 0.0)
    (7.0, 15.0, None)
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None


def _unwanted_status(response: httpx.Response) -> EndpointError:
    status = response.status_code
    return EndpointError(
        cause="rate_limited" if status == 429 else "failed",
        message=f"The endpoint answered with status {status}.",
        again=status in _WORTH_ANOTHER_TRY,
        retry_after_s=retry_after_s(response.headers.get("Retry-After", ""), time.time()),
    )
