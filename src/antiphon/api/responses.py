"""``/v1/responses``: create, count, and without a store the 404 of all that needs one."""

from __future__ import annotations

from array import array

from quart import Blueprint, Response
from quart import request as http_request

from antiphon.api.answering import answer, ignored_header
from antiphon.api.body import read_request
from antiphon.api.json_response import json_response
from antiphon.api.planning import id_tail, in_thread, sampling
from antiphon.api.service import Service
from antiphon.errors import NotFound
from antiphon.requests.input_items import open_reasoning
from antiphon.requests.responses import ResponseRequest, parse_response, resource_tail
from antiphon.runs.answers import responses_answer
from antiphon.runs.asked import calling, reading, unused_budget
from antiphon.runs.catalogue import ServedModel
from antiphon.runs.envelope import Envelope
from antiphon.runs.plan import RunPlan, TokenLimit
from antiphon.runs.prompts import response_prompt, unused_settings
from antiphon.runs.tool_use import check_tools


def blueprint(service: Service) -> Blueprint:
    """The routes."""
    routes = Blueprint("responses", __name__)
    envelope = Envelope(service.secret)

    @routes.post("/v1/responses")
    async def create() -> Response:
        request, ignored, model, prompt = await _prompted()
        seal = envelope.seal if request.wants_envelope else None
        plan = RunPlan(
            tail=id_tail(service, request),
            model=model,
            prompts=[prompt],
            prompt_param="input",
            limit=TokenLimit(
                tokens=request.max_output_tokens, param="max_output_tokens", cut_to_fit=True
            ),
            sampling=sampling(service, request, model, request.logprobs),
            echo=resource_tail(request),
            answer=responses_answer(
                stream=request.stream,
                profile=service.wire_profile,
                tokens_as_ids=request.return_tokens_as_token_ids,
                obfuscation=service.pad if request.wants_obfuscation else None,
                seal=seal,
            ),
            **reading(request, model),
            **calling(request),
        )
        return await answer(service, plan, ignored)

    @routes.post("/v1/responses/input_tokens")
    async def count() -> Response:
        _, ignored, _, prompt = await _prompted()
        return json_response(
            {"object": "response.input_tokens", "input_tokens": len(prompt)},
            headers=ignored_header(ignored),
        )

    async def _prompted() -> tuple[ResponseRequest, list[str], ServedModel, array[int]]:
        """The request of a create call and all that is known before an engine is asked."""
        request, ignored = await read_request(service, parse_response)
        model = service.catalogue.require(request.model)
        check_tools(model, request)

        def prompted() -> array[int]:
            if isinstance(request.input, list):
                open_reasoning(request.input, envelope.unseal)
            return response_prompt(model, request)

        prompt = await in_thread(service, prompted, "input")
        unused = [*unused_settings(model, request), *unused_budget(request, model)]
        return request, [*ignored, *unused], model, prompt

    @routes.post("/v1/responses/compact")
    async def not_offered() -> Response:
        raise NotFound(f"Unknown URL: POST {http_request.path}.")

    @routes.get("/v1/responses/<response_id>")
    @routes.delete("/v1/responses/<response_id>")
    @routes.post("/v1/responses/<response_id>/cancel")
    @routes.get("/v1/responses/<response_id>/input_items")
    async def not_stored(response_id: str) -> Response:
        raise NotFound(
            f"Response '{response_id}' not found.", code="response_not_found", param="response_id"
        )

    return routes
