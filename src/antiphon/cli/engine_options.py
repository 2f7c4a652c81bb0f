"""The settings of the torch engine as options of ``antiphon serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args

import click

from antiphon.cli.ranges import GIB, MANY, SECONDS_OR_OFF
from antiphon.config import DEFAULTS, EngineProcess, Weights

C = TypeVar("C", bound=Callable[..., Any])


class OnOff(click.Choice[str]):
    """``on`` or ``off``, as a bool."""

    def __init__(self) -> None:
        super().__init__(("on", "off"))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's; a bool is taken for what it is."""
        return value if isinstance(value, bool) else super().convert(value, param, ctx) == "on"


_OPTIONS = (
    click.option(
        "--tool-format",
        default=DEFAULTS.tool_format,
        metavar="NAME",
        help="How the model writes calls: auto (by its chat template), none, or a family's name.",
    ),
    click.option(
        "--reasoning-format",
        default=DEFAULTS.reasoning_format,
        metavar="NAME",
        help="How the model marks its reasoning: auto, none, or a family's name.",
    ),
    click.option("--device", default=DEFAULTS.device, help="auto, cpu or cuda[:N]."),
    click.option("--dtype", default=DEFAULTS.dtype, help="auto, float32, bfloat16 or float16."),
    click.option(
        "--weights",
        default=DEFAULTS.weights,
        type=click.Choice(get_args(Weights)),
        help="How weights are held: as --dtype says (float), or in 8 or 4 bits.",
    ),
    click.option(
        "--threads", default=DEFAULTS.threads, type=click.IntRange(1, 1024), help="Of torch."
    ),
    click.option(
        "--max-running",
        default=DEFAULTS.max_running,
        type=click.IntRange(1, 65536),
        help="Batch size.",
    ),
    click.option(
        "--step-tokens",
        type=click.IntRange(1, MANY),
        help="Tokens of an engine step, of prompts and answers. [default: by device]",
    ),
    click.option(
        "--kv-cache-bytes",
        type=click.IntRange(1, 1024 * GIB),
        help="Size of the KV cache. [default: by the memory there is]",
    ),
    click.option(
        "--prefix-cache",
        default="on" if DEFAULTS.prefix_cache else "off",
        type=OnOff(),
        help="Whether what was read of earlier prompts is found again.",
    ),
    click.option(
        "--engine-process",
        default=DEFAULTS.engine_process,
        type=click.Choice(get_args(EngineProcess)),
        help="Where the engine runs; auto is a thread on a CPU, a child on CUDA or to restart it.",
    ),
    click.option(
        "--engine-restart",
        type=OnOff(),
        help="Whether an engine that died is started again. [default: on for a child process]",
    ),
    click.option(
        "--engine-hang-timeout",
        default=DEFAULTS.engine_hang_timeout,
        type=SECONDS_OR_OFF,
        help="Seconds without a step after which a child process is ended; 0 is off.",
    ),
    click.option("--served-model-name", multiple=True, help="Public id of the model; repeatable."),
)


def engine_options(command: C) -> C:
    """Adds the options of the torch engine, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
