import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, it } from "vitest";

import { ShimChild } from "../../src/shim/shim-child.ts";
import type { Connection } from "../../src/shim/connection.ts";

const owner = {} as Connection;

it("a write to a process that closed its input before it was known to run is refused, and its exit is reported", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ccm-shim-"));
  const closed = join(folder, "closed");
  const start = {
    t: "start",
    id: "p",
    epoch: 1,
    command: "sh",
    env: {},
    tag: "1 tag",
    record: Buffer.from(""),
  } as const;
  const exited = new AbortController();
  const args = ["-c", `exec <&-; /bin/touch ${closed}; exit 3`];
  const process = new ShimChild({ ...start, args }, owner, { news: () => undefined, exited: () => exited.abort() });
  // Blocks the event loop, as when the owner sends `start` and `write` at once.
  while (!existsSync(closed));
  const written = new Promise<unknown>((resolve) => {
    process.write("a", Buffer.from("hi"), (_, error) => resolve(error));
  });
  await process.started();
  expect(await written).toMatchObject({ code: "EPIPE" });
  if (!exited.signal.aborted) await once(exited.signal, "abort");
  expect(process.next(owner)?.header).toMatchObject({ t: "exit", code: 3 });
  rmSync(folder, { recursive: true });
});
