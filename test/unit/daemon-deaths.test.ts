import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

import { DeathRecord } from "../../src/daemon/deaths.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ccm-deaths-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const record = () => new DeathRecord(folder, "n");

it("a daemon knows of the one before it that was killed, also when another ended between them while it started", async () => {
  await record().begin();
  await record().end();
  const next = record();
  await next.begin();
  expect(next.last).toMatchObject({ pid: process.pid, why: expect.stringContaining("killed") as string });
});

it("a daemon that has ended in order is no death to the next one", async () => {
  const first = record();
  await first.begin();
  await first.end();
  const next = record();
  await next.begin();
  expect(next.last).toBeUndefined();
});
