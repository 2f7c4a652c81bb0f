// A fetch that counts its requests and knows its protocol, and a program of jobs.

import { text } from "node:stream/consumers";
import { channel } from "node:diagnostics_channel";
import { Agent, fetch as undiciFetch } from "undici";

const spoken = new Set();
channel("undici:client:connected").subscribe(({ socket }) => {
  spoken.add(socket.alpnProtocol === "h2" ? "HTTP/2" : "HTTP/1.1");
});

// HTTP/2 is chosen by both sides while TLS begins; in the clear it is always HTTP/1.1.
const dispatcher = new Agent({ allowH2: true, connect: { ca: process.env.AUTHORITY } });

export function wire() {
  const sent = [];
  const fetch = (url, options) => {
    sent.push(new URL(url).pathname);
    return undiciFetch(url, { ...options, dispatcher });
  };
  return { sent, fetch };
}

// Standard input: an object of jobs by name. Standard output: what `done` made of each, with the
// paths it asked, or the error it threw; and the protocols that were spoken.
export async function program(done) {
  const made = {};
  for (const [name, job] of Object.entries(JSON.parse(await text(process.stdin)))) {
    const { sent, fetch } = wire();
    made[name] = { sent };
    try {
      Object.assign(made[name], await done(job, fetch));
    } catch (error) {
      const { code = null, param = null, status = null, message } = error;
      const kind = error.constructor.name;
      made[name].error = { kind, name: error.name, code, param, status, message };
    }
  }
  process.stdout.write(JSON.stringify({ made, protocols: [...spoken] }));
  await dispatcher.close();
}
