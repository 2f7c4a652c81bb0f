"""Sockets in the file system: who may connect, whose file it is, and who is at the other end."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from pathlib import Path

import attrs

from antiphon.errors import StartupError

CLOSED_TO_OTHERS = 0o117
"""The umask that leaves mode 0660: the owner and the group may connect."""
ANSWER_S = 1.0


@attrs.frozen
class SocketFile:
    """The file of a socket that this process has bound."""

    path: Path
    _identity: tuple[int, int]

    @classmethod
    def of(cls, path: Path) -> SocketFile:
        """The file that is at ``path`` now."""
        return cls(path.absolute(), _identity(path))

    def remove(self) -> None:
        """Remove the file, unless another one has taken its place; idempotent."""
        try:
            if _identity(self.path) == self._identity:
                self.path.unlink()
        except OSError:
            pass  # It has gone already, or its directory is no longer ours.


def bind_file(path: Path) -> tuple[socket.socket, SocketFile]:
    """Bind a socket to ``path`` with mode 0660; one that nobody listens on any more is replaced.

    Raises ``StartupError`` when somebody answers there, or when it is no socket.
    """
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_room(path)
        before = os.umask(CLOSED_TO_OTHERS)
        try:
            made.bind(str(path))
        finally:
            os.umask(before)
        return made, SocketFile.of(path)
    except OSError as error:
        made.close()
        # A path that is too long for the system's address has no number of its own.
        why = error.strerror or str(error)
        raise StartupError(f"Cannot listen on unix:{path}: {why}.") from None
    except BaseException:
        made.close()
        raise


def _make_room(path: Path) -> None:
    """Remove what a server that died has left at ``path``."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise StartupError(f"Cannot listen on unix:{path}: a file that is no socket is there.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_S)
        refusal = probe.connect_ex(str(path))
    if refusal == errno.ECONNREFUSED:
        path.unlink()
    elif refusal != errno.ENOENT:
        # Also where it is not known: EAGAIN is a full backlog, EACCES is somebody else's socket.
        raise StartupError(f"unix:{path} is in use. Stop its owner or choose another path.")


def _identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino


@attrs.frozen
class Peer:
    """The process at the other end of a connection, as the system says."""

    pid: int
    uid: int


_CREDENTIALS = struct.Struct("3i")


def peer_of(connected: socket.socket) -> Peer | None:
    """Who has connected; None where the system does not tell (``SO_PEERCRED`` is Linux's)."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None or connected.family != socket.AF_UNIX:
        return None
    data = connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(data)
    return Peer(pid, uid)
