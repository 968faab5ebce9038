/**
 * Loaded before the conformance suite on Node without `fs.globSync` (before 22). The suite imports it for an unused command:
 * the import is removed while loading, and the installed file stays unchanged.
 */
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

const SUITE = "/@modelcontextprotocol/conformance/dist/index.js";
const IMPORTED = /\bglobSync as (\w+),/;

if (isMainThread) register(import.meta.url);

/** Hook of the module loader. Throws if the import of `globSync` is gone: then this file is no longer needed. */
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith(SUITE)) return loaded;
  const source = String(loaded.source);
  const name = IMPORTED.exec(source)?.[1];
  if (name === undefined)
    throw new Error(`${url} does not import globSync as expected: see whether node-20.mjs is needed`);
  return { ...loaded, source: `${source.replace(IMPORTED, "")}\nfunction ${name}() { return []; }\n` };
}
