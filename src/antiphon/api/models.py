"""``/v1/models``: what this server answers for."""

from __future__ import annotations

from typing import Any

from quart import Blueprint, Response

from antiphon.api.json_response import json_response
from antiphon.api.service import Service
from antiphon.errors import NotFound
from antiphon.runs.catalogue import MAX_SHOWN, ServedModel


def blueprint(service: Service) -> Blueprint:
    """The routes."""
    routes = Blueprint("models", __name__)

    @routes.get("/v1/models")
    async def list_models() -> Response:
        data = [_entry(model) for model in service.catalogue]
        return json_response({"object": "list", "data": data})

    @routes.get("/v1/models/<path:model_id>")
    async def get_model(model_id: str) -> Response:
        model = service.catalogue.find(model_id)
        if model is None:
            raise NotFound(
                f"The model `{model_id[:MAX_SHOWN]}` does not exist.",
                code="model_not_found",
                param="model",
            )
        return json_response(_entry(model))

    return routes


def _entry(model: ServedModel) -> dict[str, Any]:
    return {
        "id": model.id,
        "object": "model",
        "created": model.created,
        "owned_by": "antiphon",
        "max_model_len": model.info.context_length,
    }
