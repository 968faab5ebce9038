import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { summaryOf } from "../../console/src/timeline/reducer/summaries.ts";
import { TimelineReducer } from "../../console/src/timeline/reducer/timeline-reducer.ts";
import { Transcript } from "../../src/cli/sessions/transcript.ts";
import type { StoredEvent } from "../../src/domain/event.ts";
import { requestEntry } from "../../src/log/audit-log.ts";
import { createMasker } from "../../src/log/mask.ts";
import { presentEvent } from "../../src/view/event.ts";

/** Files that decide about each type of event: masking, display, counts and sending. */
const DECIDING = [
  "console/src/timeline/reducer/summaries.ts",
  "console/src/timeline/reducer/timeline-reducer.ts",
  "src/approvers/webhook/notices.ts",
  "src/cli/sessions/transcript.ts",
  "src/http/metrics/event-counters.ts",
  "src/log/audit-log.ts",
  "src/log/mask.ts",
  "src/usage/reading.ts",
  "src/view/event.ts",
];

/** Compiles a copy of the sources with a changed `src/domain/event.ts`. Returns the files with errors. */
async function errorsAfter(change: (events: string) => string): Promise<string[]> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-types-")));
  try {
    for (const part of ["src", "console/src", "tsconfig.base.json", "package.json"])
      cpSync(part, join(root, part), { recursive: true });
    symlinkSync(resolve("node_modules"), join(root, "node_modules"));
    const events = join(root, "src/domain/event.ts");
    writeFileSync(events, change(readFileSync(events, "utf8")));
    const compilerOptions = { lib: ["es2023"], types: ["node"], noEmit: true };
    const config = { extends: "./tsconfig.base.json", compilerOptions, files: DECIDING };
    writeFileSync(join(root, "tsconfig.json"), JSON.stringify(config));
    const printed = await new Promise<string>((settle) => {
      execFile(process.execPath, [resolve("node_modules/typescript/lib/tsc.js"), "-p", root], { cwd: root }, (_, out) =>
        settle(out),
      );
    });
    const found = [...printed.matchAll(/^(\S+)\(\d+,\d+\): error/gm)].map(([, file = ""]) => file);
    return [...new Set(found)].toSorted();
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

it("a new type of event does not compile until all code that stores, shows, counts or sends events handles it", async () => {
  const added = await errorsAfter((text) =>
    text.replace(`  event("message",`, `  event("moon.risen", z.object({ words: z.string() })),\n  event("message",`),
  );
  expect(added).toEqual(DECIDING);
}, 60_000);

const SECRET = "hunter2-hunter2";
/** An event written by a newer server. */
const UNKNOWN = {
  id: 1,
  at: 0,
  type: "moon.risen",
  data: { words: `said ${SECRET}`, list: [{ [SECRET]: "Bearer abcdefgh" }], phase: 3 },
} as unknown as StoredEvent;

it("an event of unknown type is masked in every string, whatever its content is", () => {
  const masker = createMasker({ API_TOKEN: SECRET });
  expect(masker.event(UNKNOWN)).toEqual({
    ...UNKNOWN,
    data: { words: "said [masked]", list: [{ "[masked]": "Bearer [masked]" }], phase: 3 },
  });
  const bare = { ...UNKNOWN, data: SECRET } as unknown as StoredEvent;
  expect(masker.event(bare)).toMatchObject({ data: "[masked]" });
});

it("an event of unknown type is left out of answers, transcripts and the audit log, and is a line on the page", () => {
  expect((["minimal", "delta_compact", "full"] as const).map((mode) => presentEvent(UNKNOWN, mode))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(new Transcript().page([UNKNOWN])).toBe("");
  expect(requestEntry(UNKNOWN)).toBeUndefined();
  expect(summaryOf(UNKNOWN)).toMatchObject({ tone: "quiet", text: "moon.risen" });
  const timeline = new TimelineReducer();
  timeline.take(UNKNOWN);
  expect(timeline.items).toMatchObject([{ kind: "line", text: "moon.risen" }]);
});
