import { describe, expect, it } from "vitest";
import type { CommandRun, FileChange, Receipt } from "../../src/domain/receipt.ts";
import { minimalReceipt, receiptPage } from "../../src/view/receipt.ts";
import { receiptOf } from "../kit/browser/evidence.ts";

const changed = (path: string, more: Partial<FileChange> = {}): FileChange => {
  return { path, change: "changed", lines: [10, 2], by: ["tree"], ...more };
};
const ran = (command: string, more: Partial<CommandRun> = {}): CommandRun => {
  return { eventId: 7, command, exit: 0, ...more };
};
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

const TYPICAL: Receipt = {
  ...receiptOf(),
  folders: [{ path: "/p", kind: "git", headBefore: "a", headAfter: "ab12cd3456" }],
  files: [
    changed("src/a.ts", { change: "added", lines: [20, 0] }),
    changed("test/a.test.ts", { tests: { removed: 2 }, lines: [1, 3] }),
    changed("src/b.ts"),
  ],
  commits: [{ hash: "ab12cd3456", subject: "Fix it" }],
  commands: [
    ran("npm test", { check: "test", exit: 1, passed: 41, failed: 1 }),
    ran("ls"),
    ran("npm run build | tail -3", { check: "build", exit: "unknown" }),
    ran("npm test", { check: "test", passed: 42, failed: 0 }),
  ],
  requests: [{ eventId: 4, toolName: "Bash", behavior: "deny", by: "caller" }],
  notSeen: ["Effects of commands outside the session's folders are not looked for."],
  denied: 1,
  between: 2,
};

describe("minimal receipt", () => {
  it("leaves out zero fields", () => {
    expect(minimalReceipt(receiptOf())).toEqual({ turn: 1, by: "tree", complete: true });
  });

  it("names changed tests first, and the last run of each check", () => {
    const minimal = minimalReceipt(TYPICAL);
    expect(minimal).toEqual({
      turn: 1,
      by: "tree",
      complete: true,
      files: { added: 1, changed: 2, lines: [31, 5], names: ["test/a.test.ts", "src/a.ts", "src/b.ts"] },
      tests: { removed: 2 },
      commits: ["ab12cd3"],
      commands: {
        run: 4,
        failed: 1,
        unknown: 1,
        checks: [
          { cmd: "npm run build | tail -3", exit: "unknown" },
          { cmd: "npm test", exit: 0, passed: 42, failed: 0 },
        ],
      },
      denied: 1,
      between: 2,
    });
    expect(bytes(minimal)).toBeLessThanOrEqual(400);
  });

  it("shrinks names and commands first, and counts what has no room", () => {
    const minimal = minimalReceipt({
      ...TYPICAL,
      files: many(30, (at) => changed(`packages/some-package/src/${String(at)}.ts`)),
    });
    expect(bytes(minimal)).toBeLessThanOrEqual(400);
    expect(minimal).toMatchObject({
      files: {
        changed: 30,
        lines: [300, 60],
        names: many(3, (at) => `packages/some-package/src/${String(at)}.ts`),
        more: 27,
      },
      commits: ["ab12cd3"],
      commands: { run: 4, failed: 1, checks: [{ exit: "unknown" }, { cmd: "npm test", passed: 42 }] },
    });
    const longer = minimalReceipt({
      ...TYPICAL,
      files: many(30, (at) => changed(`packages/${"some-package/".repeat(9)}src/${String(at)}.ts`)),
      commands: many(9, (at) => ran(`npm test -- ${"some-folder/".repeat(9)}${String(at)}`, { check: "test" })),
    });
    expect(bytes(longer)).toBeLessThanOrEqual(400);
    expect(longer).toMatchObject({
      files: { names: [expect.stringMatching(/^….*some-package\/src\/0\.ts$/), expect.anything()], more: 28 },
      commands: {
        run: 9,
        checks: [{ cmd: expect.stringMatching(/^npm test -- .*…$/), exit: 0 }, expect.anything()],
        more: 7,
      },
    });
  });

  it("fits into 400 bytes with any content", () => {
    const big = 9_999_999;
    const all = { deleted: big, emptied: big, removed: big, skipped: big, only: big };
    const counts = { added: big, changed: big, deleted: big, renamed: big, lines: [big, big] as [number, number] };
    const minimal = minimalReceipt({
      ...TYPICAL,
      by: "tools",
      complete: false,
      turn: big,
      files: many(50, () => changed("\u0000".repeat(4_000))),
      commands: many(50, (at) =>
        ran(`npm test ${String(at)} \u{1f600}${"\n".repeat(180)}`, { check: "test", exit: 255 }),
      ),
      commits: many(50, () => ({ hash: "ab12cd3456", subject: "" })),
      outside: many(50, String),
      gitFiles: many(50, String),
      denied: big,
      background: big,
      others: big,
      between: big,
      leftOut: big,
      counts: { ...counts, tests: all, ran: big, failed: big, unknown: big },
    });
    expect(bytes(minimal)).toBeLessThanOrEqual(400);
    expect(minimal).toMatchObject({ complete: false, files: { added: big }, commands: { run: big, more: 50 } });
  });
});

describe("pages of a receipt", () => {
  it("give everything, each within its bytes", () => {
    const receipt: Receipt = {
      ...TYPICAL,
      files: many(300, (at) => changed(`src/${String(at)}.ts`)),
      commands: many(300, (at) => ran(`cat ${String(at)}`)),
    };
    const pages: Record<string, unknown>[] = [];
    for (let from: number | undefined = 0; from !== undefined;) {
      const { next, page } = receiptPage(receipt, { from, maxBytes: 4_000 });
      expect(bytes(page)).toBeLessThanOrEqual(4_000);
      pages.push(page);
      from = next;
    }
    expect(pages.length).toBeGreaterThan(5);
    expect(pages[0]).toMatchObject({ by: "tree", denied: 1, counts: { changed: 300, ran: 300 } });
    const joined = (name: string) => pages.flatMap((page) => (page[name] ?? []) as unknown[]);
    expect(joined("files")).toEqual(receipt.files);
    expect(joined("commands")).toEqual(receipt.commands);
    expect(joined("requests")).toEqual(receipt.requests);
    expect(joined("notSeen")).toEqual(receipt.notSeen);
  });

  it("have one entry at least, so that a reader gets on", () => {
    expect(receiptPage(TYPICAL, { from: 1, maxBytes: 1 })).toEqual({
      page: { turn: 1, folders: TYPICAL.folders },
      next: 2,
    });
  });
});
