/**
 * Runs one `query()` of the Agent SDK in a Node that has not loaded the SDK before. Sends the time from the request to the
 * result, ms.
 */
process.once("message", (request) => void answer(request));
process.send("ready");

async function answer({ cwd, environment, prompt }) {
  const began = performance.now();
  const { rawQuery } = await import("./raw.mjs");
  const importMs = performance.now() - began;
  const { resultMs } = await rawQuery({ environment, folder: () => cwd }, prompt);
  process.send(importMs + resultMs);
  process.disconnect();
}
