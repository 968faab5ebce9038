/**
 * Loaded before the conformance suite on a Node without fs.globSync (before 22), which the suite imports for a command that
 * is not used here: the import is taken out of its source as it is loaded. The installed file stays as it is.
 */
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

const SUITE = "/@modelcontextprotocol/conformance/dist/index.js";
const IMPORTED = /\bglobSync as (\w+),/;

if (isMainThread) register(import.meta.url);

/** A hook of the loader. Throws when there is nothing to take out: then the suite has changed, and this file must go. */
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith(SUITE)) return loaded;
  const source = String(loaded.source);
  const name = IMPORTED.exec(source)?.[1];
  if (name === undefined)
    throw new Error(`${url} does not import globSync as expected: see whether node-20.mjs is needed`);
  return { ...loaded, source: `${source.replace(IMPORTED, "")}\nfunction ${name}() { return []; }\n` };
}
