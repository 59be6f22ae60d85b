"""What the gateway answers: the paths, who may ask, and what becomes of a request's frames."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from prometheus_client import generate_latest

from springback.producers.contract.columns import without_lone_surrogates
from springback.producers.contract.schema import frame_schema
from springback.producers.gateway.errors import RequestRefusedError
from springback.producers.gateway.kafka_delivery import NOT_ACKNOWLEDGED
from springback.producers.gateway.metrics import GatewayMetrics
from springback.producers.gateway.options import GatewayOptions
from springback.producers.gateway.request_bodies import (
    KIND_OF_TYPE,
    Admission,
    AdmittedFrame,
    BodyReader,
    ByteBudget,
    FrameNote,
    admit,
    frames_in,
)
from springback.producers.gateway.spooled_delivery import Delivery
from springback.producers.http_server import Handler

IN_A_THREAD_BYTES = 64 * 1024
"""A larger body is decoded in a thread, so that other requests need not wait for it."""

WAIT_FOR_ROOM_S, WAIT_FOR_KAFKA_S = 1, 2
OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})


class RequestOutcome(NamedTuple):
    """What became of a request's frames: how many were accepted (in Kafka, or in the spool), and what of the others.

    `warnings` tell what looks like a mistake in frames that were accepted; an answer without any does not name them.
    """

    accepted: int
    refused: list[FrameNote]
    failed: list[FrameNote]
    faulty: list[FrameNote]
    warnings: list[FrameNote]

    @property
    def status(self) -> int:
        """200: all are accepted; 207: some are, the others never will be; 503: some should be sent again; 4xx: none."""
        if self.failed:
            return 503
        if not self.refused:
            return 200
        if self.accepted:
            return 207
        return 413 if all(note.reason == "frame_too_large" for note in self.refused) else 422

    def as_answer(self) -> dict[str, Any]:
        """The body of the answer."""
        notes = {"refused": self.refused, "failed": self.failed, "faulty": self.faulty}
        if self.warnings:
            notes["warnings"] = self.warnings
        return {
            "accepted": self.accepted,
            **{name: [note.as_answer() for note in found] for name, found in notes.items()},
        }


class GatewayApp:
    """The web application of a gateway.

    Attributes:
        draining: once set, no more frames are taken.
    """

    def __init__(self, options: GatewayOptions, delivery: Delivery, metrics: GatewayMetrics) -> None:
        self._options = options
        self._delivery = delivery
        self._metrics = metrics
        self._budget = ByteBudget(options.most_pending_bytes)
        self._schema = msgspec.json.encode(frame_schema())
        self.draining = False

    def build(self) -> web.Application:
        """The application for aiohttp."""

        @web.middleware
        async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._answered(request, handler)

        app = web.Application(middlewares=[answered])
        app.router.add_post("/v1/frames", self._post_frames)
        app.router.add_get("/v1/schema", self._get_schema)
        app.router.add_get("/healthz", self._get_health)
        app.router.add_get("/readyz", self._get_ready)
        app.router.add_get("/metrics", self._get_metrics)
        return app

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer: web.StreamResponse
        try:
            self._check_token(request)
            answer = await handler(request)
        except RequestRefusedError as error:
            answer = _refusal(error)
        except web.HTTPException as error:
            allowed = {name: value for name, value in error.headers.items() if name == "Allow"}
            answer = _json(error.status, _no_such_thing(error), allowed)
        if answer.status in (400, 401, 408, 413, 415, 429) or self.draining:
            answer.force_close()  # its body may not have been read
        known = request.match_info.route.resource
        self._metrics.requests.labels("other" if known is None else known.canonical, str(answer.status)).inc()
        return answer

    def _check_token(self, request: web.Request) -> None:
        if request.path not in OPEN_TO_ALL and not self._has_token(request):
            raise RequestRefusedError(401, "unauthorized", "send the header Authorization: Bearer TOKEN")

    def _has_token(self, request: web.Request) -> bool:
        """Whether a request carries the token; any does where there is none."""
        token = self._options.token
        if token is None:
            return True
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
        return scheme.lower() == "bearer" and right

    async def _post_frames(self, request: web.Request) -> web.StreamResponse:
        kind = KIND_OF_TYPE.get(request.content_type)
        if kind is None or "Content-Type" not in request.headers:
            message = f"the Content-Type is {request.content_type}; expected one of {', '.join(KIND_OF_TYPE)}"
            raise RequestRefusedError(415, "content_type", message)
        self._check_open()
        held = 0
        try:
            async with asyncio.timeout(self._options.body_timeout_s):
                reader = self._reader(request)
                async for piece in request.content.iter_any():
                    grown = reader.feed(piece)
                    if not self._budget.take(grown):
                        message = f"{self._budget.held} bytes wait for Kafka; send it again a little later"
                        raise RequestRefusedError(429, "queue_full", message, WAIT_FOR_ROOM_S)
                    held += grown
                    self._metrics.pending.set(self._budget.held)
            outcome = await self._taken(await self._admission(kind, reader.finish()))
        except ConnectionError as error:
            raise RequestRefusedError(
                400, "body_cut_off", "the connection was closed before the body had ended"
            ) from error
        except TimeoutError as error:
            message = f"the body did not come within {self._options.body_timeout_s:g} s"
            raise RequestRefusedError(408, "body_too_slow", message) from error
        finally:
            self._budget.give_back(held)
            self._metrics.pending.set(self._budget.held)
        headers = {"Retry-After": str(WAIT_FOR_KAFKA_S)} if outcome.status == 503 else {}
        return _json(outcome.status, outcome.as_answer(), headers)

    def _check_open(self) -> None:
        problem = "the gateway is shutting down" if self.draining else self._delivery.problem
        if problem is not None:
            raise RequestRefusedError(503, "unavailable", f"nothing was taken: {problem}", WAIT_FOR_KAFKA_S)

    def _reader(self, request: web.Request) -> BodyReader:
        encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            message = f"the Content-Encoding is {encoding}; expected gzip, or none"
            raise RequestRefusedError(415, "content_encoding", message)
        most = self._options.most_body_bytes
        if (request.content_length or 0) > most:
            raise RequestRefusedError(
                413, "body_too_large", f"{request.content_length} bytes, at most {most} are taken"
            )
        return BodyReader(packed=encoding == "gzip", most_bytes=most)

    async def _admission(self, kind: str, body: bytes) -> Admission:
        def found() -> Admission:
            return admit(frames_in(kind, body, self._options.most_frames), self._delivery.largest_record)

        return found() if len(body) < IN_A_THREAD_BYTES else await asyncio.to_thread(found)

    async def _taken(self, admission: Admission) -> RequestOutcome:
        began = time.monotonic()
        results = await self._delivery.deliver(admission.admitted)
        if admission.admitted:
            self._metrics.acknowledged.observe(time.monotonic() - began)
        refused, failed = list(admission.refused), list[FrameNote]()
        for frame, problem in zip(admission.admitted, results):
            if problem is not None:
                note = FrameNote(frame.place, *problem)
                (failed if note.reason == NOT_ACKNOWLEDGED else refused).append(note)
        self._count(admission.admitted, results, refused, failed)
        left_out = {note.place for note in (*refused, *failed)}
        faulty, warnings = (
            [note for note in notes if note.place not in left_out] for notes in (admission.faulty, admission.warnings)
        )
        accepted = len(admission.admitted) - sum(problem is not None for problem in results)
        return RequestOutcome(accepted, refused, failed, faulty, warnings)

    def _count(
        self,
        admitted: Sequence[AdmittedFrame],
        results: Sequence[object],
        refused: Sequence[FrameNote],
        failed: Sequence[FrameNote],
    ) -> None:
        accepted = [frame for frame, problem in zip(admitted, results) if problem is None]
        self._metrics.frames.labels("accepted", "").inc(len(accepted))
        self._metrics.steps.inc(sum(frame.steps for frame in accepted))
        for result, notes in (("refused", refused), ("failed", failed)):
            for note in notes:
                self._metrics.frames.labels(result, note.reason).inc()

    async def _get_schema(self, request: web.Request) -> web.StreamResponse:
        return web.Response(body=self._schema, content_type="application/schema+json")

    async def _get_health(self, request: web.Request) -> web.StreamResponse:
        return _json(200, {"status": "alive"})

    async def _get_ready(self, request: web.Request) -> web.StreamResponse:
        if self._delivery.problem is not None and not self._has_token(request):
            # Everybody may ask, but addresses and users of the broker are told to those alone who have the token.
            raise RequestRefusedError(503, "unavailable", "Kafka cannot be used; the log says why", WAIT_FOR_KAFKA_S)
        self._check_open()
        return _json(200, {"status": "ready", "largest_record_bytes": self._delivery.largest_record})

    async def _get_metrics(self, request: web.Request) -> web.StreamResponse:
        self._metrics.kafka_up.set(self._delivery.kafka_up)
        self._metrics.tell_spool(self._delivery.spool_report)
        page = generate_latest(self._metrics.registry)
        return web.Response(body=page, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _refusal(error: RequestRefusedError) -> web.Response:
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    detail = without_lone_surrogates(str(error))  # it may quote a header, whatever its bytes were
    return _json(error.status, {"accepted": 0, "reason": error.reason, "detail": detail}, headers)


def _no_such_thing(error: web.HTTPException) -> dict[str, str]:
    if isinstance(error, web.HTTPMethodNotAllowed):
        expected = ", ".join(sorted(error.allowed_methods))
        return {"reason": "no_such_method", "detail": f"{error.reason}; this path takes {expected}"}
    return {"reason": "no_such_path", "detail": f"{error.reason}; frames go by POST to /v1/frames"}


def _json(status: int, content: object, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(content)
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)
