"""What can go wrong with a hub, each in one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from antiphon.errors import StartupError
from antiphon.models.hub_name import HubName

_TOKEN = "put a token that may read it into HF_TOKEN"  # noqa: S105 - it names no token


@contextmanager
def explained(hub: HubName) -> Iterator[None]:
    """Turns the failures of the hub's client into ``StartupError``.

    ``OSError`` passes where it is the system's own (a full disk, no permission).
    """
    import httpx2
    from huggingface_hub import constants, errors, get_token

    endpoint = constants.ENDPOINT
    if not endpoint:
        raise StartupError("HF_ENDPOINT is empty; give the address of a hub, or unset it.")
    if not (get_token() or "").isascii():
        raise StartupError("The hub's token (HF_TOKEN) has characters that no token has.")
    try:
        yield
    except errors.GatedRepoError as failure:
        raise StartupError(
            f"{hub} is gated: accept its terms at {endpoint}/{hub.repository}, then {_TOKEN}."
        ) from failure
    except errors.RevisionNotFoundError as failure:
        raise StartupError(
            f"{hub.repository} has no revision {hub.revision!r} on {endpoint}."
        ) from failure
    except errors.RepositoryNotFoundError as failure:
        raise StartupError(
            f"There is no model {hub.repository} on {endpoint}, or it is private: then {_TOKEN}."
        ) from failure
    except errors.OfflineModeIsEnabled as failure:
        raise StartupError(
            f"{hub} is not in the cache, and HF_HUB_OFFLINE forbids fetching it."
        ) from failure
    except errors.HfHubHTTPError as failure:
        raise StartupError(_of_status(hub, endpoint, failure.response.status_code)) from failure
    except httpx2.HTTPError as failure:
        reason = str(failure).strip().rstrip(".") or type(failure).__name__
        raise StartupError(
            f"{endpoint} cannot be reached, or broke off, while fetching {hub} ({reason}). What "
            "has come is kept: the same command goes on from there. Without a network, 'antiphon "
            "serve PATH' always works."
        ) from failure
    except OSError as failure:
        if failure.errno is not None:
            raise
        # The client tells a wrong length so, in several lines.
        raise StartupError(
            f"{hub} did not come whole: {str(failure).splitlines()[0]} Try again."
        ) from failure
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as failure:
        raise StartupError(
            f"{endpoint} does not answer like a model hub ({type(failure).__name__}: "
            f"{' '.join(str(failure).split())[:200]}). Check HF_ENDPOINT and the proxies."
        ) from failure


def _of_status(hub: HubName, endpoint: str, status: int) -> str:
    if status in (401, 403):
        return f"{endpoint} refuses {hub} (status {status}): {_TOKEN}."
    if status == 429:
        return (
            f"{endpoint} has had too many requests (status 429): try again later, or {_TOKEN}, "
            "which has a higher limit."
        )
    if status == 404:
        return f"{endpoint} does not have all the files of {hub} (status 404)."
    return f"{endpoint} answered {status} for {hub}; try again later."
