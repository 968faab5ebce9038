import { join } from "node:path";

import { describe, expect, it, vi } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";
import { TAMPERINGS } from "../kit/store/tampering.ts";

/** Changes the files of a store while its server runs a turn. */

const world = useWorld({ agent: "stand-in" });

/** Long `sessionInitTimeoutMs`, because several Claude Codes start at once. */
const PATIENT = { advanced: { sessionInitTimeoutMs: 60_000 } };
const look = { action: "poll", until: "end", waitMs: 40_000 };
/** All other `TAMPERINGS` are detected alike; test/unit/store-changed.test.ts has the full list. */
const ROWS = TAMPERINGS.filter(([what]) => !/index|another log/.test(what));

describe.concurrent("changes of store files in use", { timeout: 300_000 }, () => {
  it.each(ROWS)("a turn stops, and new and waiting calls say why, when %s", async (what, tamper, told) => {
    const store = join(world.folder(), "store.db");
    const env = { CLAUDE_CODE_MCP_STORE: store };
    const server = await world.server({ env });
    const gate = `store-${what}`;
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ text: "x", gateBefore: gate }]),
      cwd: world.folder(),
      ...PATIENT,
    });
    await world.model.waitForRequest(({ lastUserText }) => lastUserText.includes(gate));
    const asked = async () =>
      server.call("claude_code_check", { ...look, sessionId }).then((answer) => JSON.stringify(answer), String);
    const waiting = asked();
    await tamper(store);

    // A replaced file can hold the session: then the session's log has the reason.
    for (const answer of [await waiting, await asked()]) {
      expect(answer).toContain(told);
      expect(answer).not.toContain("everything reported before is stored");
    }
    const isMine = ({ command }: { command: string }) => command.includes(sessionId);
    await vi.waitFor(() => expect(world.processes().filter(isMine)).toEqual([]), 15_000);
    await server.close();

    // The next server can use the store, unless a newer server has changed it.
    const next = await world.server({ env });
    const begun = { prompt: scriptTag([{ text: "Good." }]), cwd: world.folder(), waitMs: 45_000, ...PATIENT };
    const after = await next.call("claude_code", begun).then(({ result }) => result?.result, String);
    expect(after).toContain(what.startsWith("a newer") ? told : "Good.");
    // SQLite still holds the content of a deleted log.
    const kept = await next
      .call("claude_code_check", { ...look, sessionId, cursor: 1, waitMs: 0, responseMode: "full" })
      .then(
        ({ events }) => events.length,
        () => 0,
      );
    expect(kept).toBeGreaterThan(what === "the log is deleted" ? 0 : -1);
  });
});
