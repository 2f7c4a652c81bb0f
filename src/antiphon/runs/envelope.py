"""``encrypted_content``: a reasoning item's text that a client may keep and bring back.

The text is signed with the server's key, so that what comes back is what this server wrote; it is
no secret from the client, which sees the same text as ``content``. The first characters name the
form, so that another one can follow.
"""

from __future__ import annotations

import hashlib

from itsdangerous import BadData, URLSafeSerializer

VERSION = "ap1."


class Envelope:
    """``seal`` and ``unseal`` with one key, deterministic: a text has one envelope."""

    def __init__(self, secret: str | bytes) -> None:
        self._serializer = URLSafeSerializer(
            secret,
            salt="antiphon reasoning",
            signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
        )

    def seal(self, text: str) -> str:
        """The envelope of a text: URL-safe ASCII."""
        return VERSION + str(self._serializer.dumps(text))

    def unseal(self, envelope: str) -> str:
        """The text in an envelope. Raises ValueError for one that this key did not make."""
        try:
            if not envelope.startswith(VERSION):
                raise ValueError("not an envelope of this version")
            text = self._serializer.loads(envelope.removeprefix(VERSION))
        except BadData as error:
            raise ValueError(f"not an envelope of this key: {error}") from None
        if not isinstance(text, str):
            raise ValueError("an envelope that holds no text")
        return text
