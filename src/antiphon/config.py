"""Everything a server can be told, in one place.

Flags win over environment variables (``ANTIPHON_<FLAG>``), which win over the defaults here.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from antiphon.errors import StartupError, shortened
from antiphon.transport.addresses import Address, TcpAddress, parse_address
from antiphon.transport.limits import DEFAULT_LIMITS, Limits
from antiphon.transport.settings import BACKLOG, HttpVersions
from responsory.projections.reasoning import ReasoningField
from responsory.projections.responses import Profile
from responsory.segments.formats import CALLS, REASONING

EngineName: TypeAlias = Literal["torch", "replay"]
UnknownModelStatus: TypeAlias = Literal[400, 404]
EventLoop: TypeAlias = Literal["auto", "asyncio", "uvloop"]
Switch: TypeAlias = Literal["auto", "off"]
EngineProcess: TypeAlias = Literal["auto", "thread", "child"]
Weights: TypeAlias = Literal["auto", "float", "int8", "int4"]

DEFAULT_FIXTURES = Path("fixtures")
TORCH_ONLY = frozenset({
    "served_model_name", "device", "dtype", "threads", "max_running", "weights", "prefix_cache",
    "step_tokens", "kv_cache_bytes", "engine_process", "engine_restart",
    "engine_hang_timeout", "tool_format", "reasoning_format",
})  # fmt: skip
_LONGEST_NAME = 256
REPLAY_ONLY = frozenset({"fixtures", "pace"})


@attrs.frozen(kw_only=True)
class Config:
    """Settings of ``antiphon serve``."""

    model: str | None = None
    """Alias, GGUF file or Hugging Face directory; None is the default model."""
    served_model_name: tuple[str, ...] = ()
    """Public ids instead of the model's own name."""
    engine: EngineName = "torch"
    host: str = "127.0.0.1"
    port: int = 8000
    bind: tuple[str, ...] = ()
    """Addresses instead of host and port: ``HOST:PORT``, ``unix:PATH``, ``fd://N``."""
    backlog: int = BACKLOG
    """Connections that may wait to be accepted, on each address."""
    http: HttpVersions = "auto"
    """The versions of HTTP that are spoken."""
    loop: EventLoop = "auto"
    """The event loop; ``auto`` is uvloop where that is installed."""
    certfile: Path | None = None
    keyfile: Path | None = None
    client_ca: Path | None = None
    """Authorities of which a client must show a certificate."""
    forwarded_allow_ips: tuple[str, ...] = ()
    """Proxies that are believed about the client: addresses, networks, ``unix`` or ``*``."""
    access_log: str | None = None
    """File with a line for each request; ``-`` is standard output."""
    h2_direct_framing: Switch = "auto"
    """Whether DATA of plainly open HTTP/2 streams is framed without the library."""
    limits: Limits = DEFAULT_LIMITS
    """What one client may take of the transport."""
    api_key: tuple[str, ...] = ()
    tool_format: str = "auto"
    """The family by which calls are read; ``auto``: as the chat template writes them; ``none``."""
    reasoning_format: str = "auto"
    """The same for reasoning."""
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 1
    max_running: int = 16
    """Sequences decoded together; more wait."""
    weights: Weights = "auto"
    """How the weights are held in memory."""
    prefix_cache: bool = True
    """Whether what was read of earlier prompts is kept and found again."""
    step_tokens: int | None = None
    """Tokens of an engine step; None: by device."""
    kv_cache_bytes: int | None = None
    """Size of the KV cache; None: by the memory there is."""
    engine_process: EngineProcess = "auto"
    """Where the engine runs: a thread of the server, or a process of its own."""
    engine_restart: bool | None = None
    """Whether an engine that died is started again; None: if it is a process of its own."""
    engine_hang_timeout: float = 120.0
    """Seconds without a step after which a process is taken for dead; 0 is off."""
    fixtures: Path | None = None
    pace: str = "recorded"
    strict_requests: bool = False
    wire_profile: Profile = "openai"
    """How the events of a Responses stream are named."""
    reasoning_field: ReasoningField = "reasoning_content"
    """Where a chat answer shows its reasoning."""
    unknown_model_status: UnknownModelStatus = 400
    """Status of a request for a model that is not served."""
    sse_ping_interval: float = 15.0
    """Seconds of silence before an event stream carries a comment; 0 is off."""
    request_timeout: float = 0.0
    """Seconds an answer may take once the engine has taken its request; 0 is off."""
    max_body: int = 16 * 1024 * 1024
    """Bytes of a request body; more is refused."""
    rate_limit: int = 0
    """Generation requests per minute of each API key, or of all clients without keys; 0 is off."""
    max_waiting: int = 256
    """Sequences that may wait for the engine; above it requests are refused. 0: no limit."""
    cors_origin: tuple[str, ...] = ()
    """Origins whose pages may call the API from a browser; ``*`` is any."""
    secret: str | None = attrs.field(default=None, repr=False)
    """Signs the reasoning that clients keep for us. None: another one in every process."""
    drain_timeout: float = 30.0
    """Seconds that open answers get when the server is told to stop."""

    def check(self) -> None:
        """Settings that exclude each other. Raises ``StartupError``."""
        self._check_transport()
        if self.engine == "replay" and self.model is not None:
            raise StartupError("MODEL is for the torch engine; replay serves every recording.")
        others = TORCH_ONLY if self.engine == "replay" else REPLAY_ONLY
        for field in attrs.fields(Config):
            if field.name in others and getattr(self, field.name) != field.default:
                flag = field.name.replace("_", "-")
                raise StartupError(f"--{flag} has no meaning for --engine {self.engine}.")
        self._check_process()
        self._check_formats()
        for name in self.served_model_name:
            if not name.isprintable() or name != name.strip() or not 0 < len(name) <= _LONGEST_NAME:
                raise StartupError(
                    f"--served-model-name is {shortened(name)!r}; it must be 1 to {_LONGEST_NAME} "
                    "printable characters, without spaces around them."
                )
        if any(not key.isascii() or not key.strip() for key in self.api_key):
            raise StartupError("--api-key must not be empty and must be ASCII.")
        if any(not _is_origin(origin) for origin in self.cors_origin):
            raise StartupError("--cors-origin is * or SCHEME://HOST[:PORT], without a path.")
        if self.secret is not None and not self.secret:
            raise StartupError("--secret must not be empty.")

    @property
    def asks_for_child(self) -> bool:
        """Whether something is asked for that only a process of the engine's own can do.

        A thread cannot be ended, and what a dead one holds of memory is not surely given back.
        """
        hang = self.engine_hang_timeout != DEFAULTS.engine_hang_timeout
        return self.engine_process == "child" or bool(self.engine_restart) or hang

    def _check_process(self) -> None:
        if self.engine_process == "thread" and self.asks_for_child:
            flag = "--engine-restart on" if self.engine_restart else "--engine-hang-timeout"
            raise StartupError(f"{flag} needs --engine-process child.")

    def _check_formats(self) -> None:
        """Names are those of families, or ``auto`` or ``none``."""
        for flag, given, known in (
            ("--tool-format", self.tool_format, CALLS),
            ("--reasoning-format", self.reasoning_format, REASONING.keys() - {"plain"}),
        ):
            if given not in ("auto", "none") and given not in known:
                names = ", ".join(sorted(known))
                raise StartupError(
                    f"{flag} {shortened(given)!r} is no family: auto, none, {names}."
                )

    def _check_transport(self) -> None:
        if (self.certfile is None) != (self.keyfile is None):
            raise StartupError("--certfile and --keyfile must be given together.")
        if self.client_ca is not None and self.certfile is None:
            raise StartupError("--client-ca needs --certfile and --keyfile.")
        if self.bind and (self.host, self.port) != (DEFAULTS.host, DEFAULTS.port):
            raise StartupError("--bind stands in the place of --host and --port.")
        for text, address in zip(self.bind, self.addresses, strict=False):
            if self.addresses.count(address) > 1 and not _is_any_port(address):
                raise StartupError(f"--bind {text} is given twice.")
        if self.access_log == "":
            raise StartupError("--access-log is a file, or - for standard output.")
        if self.loop == "uvloop" and find_spec("uvloop") is None:
            raise StartupError(
                "--loop uvloop needs uvloop: pip install uvloop, with the pip of this environment."
            )
        limits = self.limits
        if limits.stream_low > limits.stream_high:
            raise StartupError("--stream-low must not be above --stream-high.")
        if limits.stream_high > limits.connection_high:
            raise StartupError("--stream-high must not be above --connection-high.")

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where to listen. Raises ``StartupError`` for what is no address."""
        if self.bind:
            return tuple(parse_address(text) for text in self.bind)
        return (TcpAddress(self.host, self.port),)

    @property
    def uses_uvloop(self) -> bool:
        """Whether the event loop is uvloop's."""
        return self.loop != "asyncio" and find_spec("uvloop") is not None


def _is_origin(text: str) -> bool:
    """Whether a browser could name it in ``Origin`` (RFC 6454, section 6.2), or ``*``."""
    return text == "*" or re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#@\s\\]+", text) is not None


def _is_any_port(address: Address) -> bool:
    return isinstance(address, TcpAddress) and address.port == 0


DEFAULTS = Config()
