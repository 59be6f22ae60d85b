"""The gateway's own metrics, in a registry of their own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from springback.producers.emitter.reports import SpoolReport


class GatewayMetrics:
    """What the gateway has done and is doing, for Prometheus.

    Attributes:
        registry: what the page shows.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "springback_gateway_requests_total", "Requests answered", ["path", "status"], registry=self.registry
        )
        self.frames = Counter(
            "springback_gateway_frames_total",
            "Frames by what became of them: accepted (in Kafka or spool), refused (for good), failed (to send again)",
            ["result", "reason"],
            registry=self.registry,
        )
        self.steps = Counter("springback_gateway_steps_total", "Steps in accepted frames", registry=self.registry)
        self.acknowledged = Histogram(
            "springback_gateway_acknowledgement_seconds",
            "From a request's frames to Kafka's word on all of them",
            buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
            registry=self.registry,
        )
        self.pending = Gauge(
            "springback_gateway_pending_bytes", "Bytes read and not yet answered", registry=self.registry
        )
        self.connections = Gauge("springback_gateway_connections", "Open connections", registry=self.registry)
        self.turned_away = Counter(
            "springback_gateway_connections_turned_away_total",
            "Connections closed at once, as there were too many, or for being too slow",
            ["reason"],
            registry=self.registry,
        )
        self.kafka_up = Gauge("springback_gateway_kafka_up", "Whether Kafka takes frames", registry=self.registry)
        self.spool_frames = Gauge(
            "springback_gateway_spool_frames", "Frames on disk that Kafka has not acknowledged", registry=None
        )
        self.spool_bytes = Gauge("springback_gateway_spool_bytes", "What the spool takes on disk", registry=None)
        self.spool_lost = Gauge(
            "springback_gateway_spool_lost_steps",
            "Steps that were accepted and then lost: refused by Kafka, or not read back, since the gateway began",
            registry=None,
        )
        self.spool_writable = Gauge(
            "springback_gateway_spool_writable", "Whether the spool takes frames", registry=None
        )
        self._spool_is_shown = False

    def tell_spool(self, report: SpoolReport | None) -> None:
        """Shows what is in the spool; a gateway without one has no series of it."""
        if report is None:
            return
        if not self._spool_is_shown:
            self._spool_is_shown = True
            for gauge in (self.spool_frames, self.spool_bytes, self.spool_lost, self.spool_writable):
                self.registry.register(gauge)
        self.spool_frames.set(report.frames + report.left_frames)
        self.spool_bytes.set(report.size_bytes)
        self.spool_lost.set(report.refused_steps + report.lost_steps + report.left_gone_steps)
        self.spool_writable.set(report.problem is None)
