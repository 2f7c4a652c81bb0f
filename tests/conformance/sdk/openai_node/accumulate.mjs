// openai-node's own stream helpers over golden streams: one process for all of them.
//
// Standard input: a JSON list of {endpoint, case, file, split}. Standard output: a JSON list in the
// same order of {events, final, error}: the types of the events that were seen, the object that the
// helper accumulated or null, and what it threw or null.

import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import OpenAI from "openai";

// A body that arrives `split` bytes at a time, or at once.
function bodyOf(bytes, split) {
  const size = split ?? bytes.length;
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, (at += size)));
    },
  });
}

function clientOf({ file, split }) {
  const bytes = new Uint8Array(readFileSync(file));
  const headers = { "content-type": "text/event-stream; charset=utf-8" };
  return new OpenAI({
    apiKey: "none",
    baseURL: "http://test/v1",
    maxRetries: 0,
    fetch: async () => new Response(bodyOf(bytes, split), { status: 200, headers }),
  });
}

const messages = [{ role: "user", content: "Hi" }];

const helpers = {
  async responses(client, events) {
    const stream = client.responses.stream({ model: "tiny", input: "Hi" });
    for await (const event of stream) events.push(event.type);
    return stream.finalResponse();
  },
  async chat(client, events) {
    const stream = client.chat.completions.stream({ model: "tiny", messages });
    // A field of a delta that the helper does not know is not added up: the last one wins. So
    // reasoning is added up here, as those who show it do.
    const reasoning = {};
    for await (const chunk of stream) {
      events.push(chunk.object);
      for (const { index, delta } of chunk.choices) {
        reasoning[index] = (reasoning[index] ?? "") + (delta.reasoning_content ?? "");
      }
    }
    const final = await stream.finalChatCompletion();
    for (const { index, message } of final.choices) message.reasoning_content = reasoning[index];
    return final;
  },
  // There is no helper here: the chunks are added up by hand.
  async completions(client, events) {
    const stream = await client.completions.create({ model: "tiny", prompt: "Hi", stream: true });
    const choices = {};
    let usage = null;
    for await (const chunk of stream) {
      events.push(chunk.object);
      usage = chunk.usage ?? usage;
      for (const { index, text, finish_reason } of chunk.choices) {
        choices[index] ??= { text: "" };
        choices[index].text += text;
        choices[index].finish_reason = finish_reason;
      }
    }
    return { choices, usage };
  },
};

async function accumulate(golden) {
  const events = [];
  try {
    const final = await helpers[golden.endpoint](clientOf(golden), events);
    return { events, final, error: null };
  } catch (error) {
    const { code = null, message } = error;
    return { events, final: null, error: { name: error.constructor.name, code, message } };
  }
}

const results = [];
for (const golden of JSON.parse(await text(process.stdin))) results.push(await accumulate(golden));
process.stdout.write(JSON.stringify(results));
