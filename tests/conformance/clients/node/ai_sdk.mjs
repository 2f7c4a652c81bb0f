// The AI SDK's generateText and streamText. A job: {address, provider, model, stream, tools}.

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";
import { program } from "./wire.mjs";

const providers = {
  chat: (baseURL, fetch) => createOpenAI({ baseURL, apiKey: "none", fetch }).chat,
  responses: (baseURL, fetch) => createOpenAI({ baseURL, apiKey: "none", fetch }).responses,
  openResponses: (baseURL, fetch) =>
    createOpenResponses({ name: "antiphon", url: `${baseURL}/responses`, fetch }),
};

await program(async ({ address, provider, model, stream, tools, options }, fetch) => {
  const asked = [];
  const warned = [];
  const getWeather = tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      asked.push(city);
      return "17 degrees";
    },
  });
  globalThis.AI_SDK_LOG_WARNINGS = ({ warnings }) => warned.push(...warnings);
  const call = {
    model: providers[provider](address, fetch)(model),
    prompt: "Hi",
    // Else it sends earlier items by their ids, and nothing is stored.
    providerOptions: { openai: { store: false, include: ["reasoning.encrypted_content"] } },
    ...(tools ? { tools: { get_weather: getWeather }, stopWhen: isStepCount(4) } : {}),
    ...options,
  };
  let result;
  let deltas = null;
  if (stream) {
    let thrown = null;
    result = streamText({ ...call, onError: ({ error }) => (thrown ??= error) });
    deltas = "";
    for await (const text of result.textStream) deltas += text;
    if (thrown) throw thrown;
  } else {
    result = await generateText(call);
  }
  const usage = await result.usage;
  return {
    text: await result.text,
    deltas,
    reasoning: (await result.reasoningText) ?? null,
    ending: await result.finishReason,
    tokens: [usage.inputTokens, usage.outputTokens],
    asked,
    warned,
  };
});
