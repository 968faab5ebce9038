import { EventEmitter, once } from "node:events";

import { afterEach, expect, it, vi } from "vitest";

import { Installer } from "../../src/claude/installer.ts";
import { PackageCache } from "../../src/packages/package-cache.ts";
import type { Pinned } from "../../src/packages/pinned.ts";

/** Progress reports of `Installer`. `packages-install.test.ts` covers the installation. */

const events = new EventEmitter();

/** Each measurement ends with the event `measured`, the installation with `installed`. */
class SlowCache extends PackageCache {
  override findEntry(): string {
    return "/there";
  }

  override async install(): Promise<void> {
    await once(events, "installed");
  }

  override async installedBytes({ bytes }: Pinned): Promise<number> {
    await once(events, "measured");
    return bytes / 2;
  }
}

afterEach(() => vi.useRealTimers());

it("no progress is reported after the end of an installation", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const packages = new SlowCache({ cacheFolder: "/none", environment: {} });
  const toInstall = { name: "part", version: "1.0.0", integrity: "sha512-none", bytes: 1000, entry: "main.js" };
  const claude = {
    locate: async () => Promise.resolve({ path: undefined, version: undefined, warning: undefined, toInstall }),
  };
  const percentages: number[] = [];
  const done = new Installer({ claude, packages }).install(
    { environment: {} },
    (percent) => void percentages.push(percent),
  );
  await vi.waitFor(() => expect(percentages).toEqual([0]));
  vi.advanceTimersByTime(500);
  events.emit("measured");
  await vi.waitFor(() => expect(percentages).toEqual([0, 50]));
  vi.advanceTimersByTime(500);
  expect(events.listenerCount("measured")).toBe(1);
  events.emit("installed");
  await done;
  events.emit("measured");
  await new Promise(setImmediate);
  expect(percentages).toEqual([0, 50]);
});
