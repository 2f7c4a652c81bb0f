// openai-node's stream helpers and unary calls. A job: {address, how, model, options}.

import OpenAI from "openai";
import { program } from "./wire.mjs";

const weather = {
  name: "get_weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};

function told(asked, city) {
  asked.push(city);
  return "17 degrees";
}

const messages = [{ role: "user", content: "Hi" }];

function ofChat(answer, reasoning) {
  const [{ message, finish_reason }] = answer.choices;
  return {
    text: message.content,
    reasoning: reasoning ?? message.reasoning_content ?? null,
    calls: (message.tool_calls ?? []).map(({ function: call }) => [call.name, call.arguments]),
    ending: finish_reason,
    usage: answer.usage,
  };
}

function ofResponse(response) {
  const calls = response.output.filter((item) => item.type === "function_call");
  const reasoning = response.output.find((item) => item.type === "reasoning");
  return {
    text: response.output_text,
    reasoning: reasoning?.content[0].text ?? null,
    calls: calls.map((call) => [call.name, call.arguments]),
    ending: response.status,
    usage: response.usage,
  };
}

const ways = {
  async chat(client, options) {
    return ofChat(await client.chat.completions.create({ messages, ...options }));
  },
  async chatStream(client, options) {
    const stream = client.chat.completions.stream({
      messages,
      stream_options: { include_usage: true },
      ...options,
    });
    let seen = "";
    let reasoning = null;
    stream.on("content", (delta) => (seen += delta));
    for await (const { choices } of stream) {
      const more = choices[0]?.delta.reasoning_content;
      if (more) reasoning = (reasoning ?? "") + more;
    }
    const made = ofChat(await stream.finalChatCompletion(), reasoning);
    if ((made.text ?? "") !== seen) throw new Error(`the deltas are ${seen}`);
    return made;
  },
  async responses(client, options) {
    return ofResponse(await client.responses.create({ input: "Hi", ...options }));
  },
  async responsesStream(client, options) {
    const stream = client.responses.stream({ input: "Hi", ...options });
    let seen = "";
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") seen += event.delta;
    }
    const made = ofResponse(await stream.finalResponse());
    if (made.text !== seen) throw new Error(`the deltas are ${seen}`);
    return made;
  },
  // A tool that is run, and the answer after its output.
  async chatTools(client, options) {
    const asked = [];
    const get_weather = {
      type: "function",
      function: { ...weather, parse: JSON.parse, function: ({ city }) => told(asked, city) },
    };
    const runner = client.chat.completions.runTools({
      messages,
      stream: true,
      tools: [get_weather],
      ...options,
    });
    return { text: await runner.finalContent(), asked };
  },
  // The same by hand, for which there is no helper.
  async responsesTools(client, options) {
    const asked = [];
    const input = [{ role: "user", content: "Hi" }];
    for (;;) {
      const tools = [{ type: "function", strict: false, ...weather }];
      const stream = client.responses.stream({ input, tools, ...options });
      const response = await stream.finalResponse();
      const calls = response.output.filter((item) => item.type === "function_call");
      if (!calls.length) return { text: response.output_text, asked };
      input.push(...response.output);
      for (const { call_id, arguments: given } of calls) {
        const output = told(asked, JSON.parse(given).city);
        input.push({ type: "function_call_output", call_id, output });
      }
    }
  },
};

await program(({ address, how, model, options }, fetch) => {
  const client = new OpenAI({ baseURL: address, apiKey: "none", fetch });
  return ways[how](client, { model, ...options });
});
