// Writes the chat templates of the package to the file that is named: [[name, Jinja source], …].
// The package has them in a source file that it does not export: node reads such a file itself.
import { copyFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const source = "node_modules/@huggingface/ollama-utils/src/chat-template-automap.ts";
copyFileSync(new URL(source, here), new URL("automap.ts", here));
const { OLLAMA_CHAT_TEMPLATE_MAPPING: known } = await import("./automap.ts");
writeFileSync(process.argv[2], JSON.stringify(known.map(({ model, gguf }) => [model, gguf])));
