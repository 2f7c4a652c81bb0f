"""What is counted, per request and per answer, never per token.

No label holds what a client wrote: routes, status codes and our own error codes are all there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from antiphon.runs.run import Run
from antiphon.transport.counted import GAUGES, Counted, meanings

SECOND_NS = 1e9
FIRST_TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Transport(Collector):
    """What the host counts, read when it is asked for."""

    def __init__(self, counted: Counted) -> None:
        self._counted = counted

    def collect(self) -> Iterator[Metric]:
        """One metric per number, without labels."""
        for name, meaning in meanings().items():
            family = GaugeMetricFamily if name in GAUGES else CounterMetricFamily
            value = getattr(self._counted, name)
            yield family(f"antiphon_transport_{name}", meaning, value=value)


class Metrics:
    """The counters of one server, in a registry of their own.

    They count from before its model is loaded; until then no sequence runs and none waits.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.transport = Counted()
        """For the host to count in."""
        self.registry.register(Transport(self.transport))
        self._running = Gauge(
            "antiphon_requests_running", "Sequences in the engine's batch", registry=self.registry
        )
        self._waiting = Gauge(
            "antiphon_requests_waiting", "Sequences that wait for it", registry=self.registry
        )
        self._requests = Counter(
            "antiphon_requests",
            "HTTP requests by route and status code",
            ("endpoint", "status"),
            registry=self.registry,
        )
        self._ignored = Counter(
            "antiphon_ignored_fields",
            "Request fields that had no effect",
            ("endpoint",),
            registry=self.registry,
        )
        self._refused = Counter(
            "antiphon_refused_requests",
            "Requests that may be tried again, by error code",
            ("code",),
            registry=self.registry,
        )
        self._failed = Counter(
            "antiphon_failed_responses",
            "Answers that began and failed, by error code",
            ("code",),
            registry=self.registry,
        )
        self._prompt = Counter(
            "antiphon_prompt_tokens", "Prompt tokens of accepted calls", registry=self.registry
        )
        self._generation = Counter(
            "antiphon_generation_tokens", "Tokens generated", registry=self.registry
        )
        self._first_token = Histogram(
            "antiphon_time_to_first_token_seconds",
            "From a call's submission to its first token",
            buckets=FIRST_TOKEN_S,
            registry=self.registry,
        )
        self._duration = Histogram(
            "antiphon_request_duration_seconds",
            "From an accepted call's submission to its end",
            buckets=DURATION_S,
            registry=self.registry,
        )
        self._restarts = Counter(
            "antiphon_engine_restarts",
            "Times that an engine which died was started again",
            registry=self.registry,
        )

    def watch(self, load: Callable[[], tuple[int, int]]) -> None:
        """Show the (running, waiting) sequences, looked up whenever they are asked for."""
        self._running.set_function(lambda: load()[0])
        self._waiting.set_function(lambda: load()[1])

    def answered(self, endpoint: str, status: int, ignored: int) -> None:
        """One HTTP request has got its head."""
        self._requests.labels(endpoint, str(status)).inc()
        if ignored:
            self._ignored.labels(endpoint).inc(ignored)

    def engine_restarted(self) -> None:
        """An engine that had died is there again."""
        self._restarts.inc()

    def refused(self, code: str) -> None:
        """One request was refused for the time being."""
        self._refused.labels(code).inc()

    def ended(self, run: Run) -> None:
        """One call is over. One that the engine refused is an HTTP error and nothing else."""
        if not run.accepted:
            return
        if run.failure is not None:
            self._failed.labels(run.failure.code).inc()
        self._prompt.inc(sum(len(prompt) for prompt in run.plan.prompts))
        self._generation.inc(sum(choice.usage().output_tokens for choice in run.choices))
        if run.first_token_ns is not None:
            self._first_token.observe((run.first_token_ns - run.opened_ns) / SECOND_NS)
        if run.ended_ns is not None:
            self._duration.observe((run.ended_ns - run.opened_ns) / SECOND_NS)
