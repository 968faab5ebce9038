import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { Folder } from "../../domain/options.ts";
import type { SessionQuery } from "../ports.ts";
import { defineAction, defineRequest, type ActingCaller } from "./action.ts";
import { SearchText, SessionId } from "./input.ts";

/** Actions that only read. */

/** Lists the caller's own sessions, the newest first. */
export const list = defineRequest({
  name: "list",
  scope: "read",
  fields: { cwd: Folder.exactOptional(), text: SearchText.exactOptional() },
  run: async ({ caller: { principal }, engine }, query: Omit<SessionQuery, "principal">) =>
    engine.list({ ...query, principal }),
});

export const get = defineAction({
  name: "get",
  scope: "read",
  fields: { sessionId: SessionId },
  run: async ({ caller: { principal }, engine }, { sessionId }) => engine.get(principal, sessionId),
});

interface EventRange {
  readonly sessionId: string;
  readonly from: number;
  readonly limit: number;
}

/** Reads a session's log. Also used by surfaces that only report new events. */
export const events = defineRequest({
  name: "events",
  scope: "read",
  fields: { sessionId: SessionId },
  run: async ({ caller: { principal }, engine }, { from, limit, sessionId }: EventRange) =>
    engine.read(principal, sessionId, from, limit),
});

/** Returns the session's own edits from the log, and the git state of the folder. Changes by shells are visible to git only. */
export const diff = defineAction({
  name: "diff",
  scope: "read",
  fields: { sessionId: SessionId },
  run: async (acting, { sessionId }) => {
    const files = await readEditedFiles(sessionId, acting);
    const git = await acting.engine.workTree(acting.caller.principal, sessionId);
    return { files, git };
  },
});

const Hunk = z.looseObject({
  oldStart: z.number(),
  oldLines: z.number(),
  newStart: z.number(),
  newLines: z.number(),
  lines: z.array(z.string()),
});

/** Claude Code's report of a file that a tool has changed. */
const Edit = z.looseObject({
  tool_use_result: z.looseObject({ filePath: z.string(), structuredPatch: z.array(Hunk), type: z.string().optional() }),
  message: z.looseObject({ content: z.array(z.unknown()) }),
});

const Call = z.looseObject({
  message: z.looseObject({ content: z.array(z.unknown()) }),
});
const Write = z.looseObject({
  type: z.literal("tool_use"),
  id: z.string(),
  input: z.looseObject({ content: z.string() }),
});
const Result = z.looseObject({ type: z.literal("tool_result"), tool_use_id: z.string() });

const PAGE = 500;

/** Groups patches by file, in order of first change; a patch per edit. */
async function readEditedFiles(
  sessionId: string,
  { caller: { principal }, engine }: ActingCaller,
): Promise<JsonObject[]> {
  const files = new Map<string, string[]>();
  const written = new Map<string, string>();
  const { state } = await engine.get(principal, sessionId);
  for (let from = 1; from <= state.lastEventId; from += PAGE) {
    for (const event of await engine.read(principal, sessionId, from, PAGE)) {
      if (event.type !== "message") continue;
      rememberWrites(written, event.data.message);
      const edit = Edit.safeParse(event.data.message);
      if (!edit.success) continue;
      const { filePath } = edit.data.tool_use_result;
      files.set(filePath, [...(files.get(filePath) ?? []), patchOf(edit.data, written)]);
    }
  }
  return [...files].map(([path, patches]) => ({ path, edits: patches.length, patch: patches.join("\n") }));
}

/** Remembers the content of a Write call, because the report of a new file has no patch. */
function rememberWrites(written: Map<string, string>, message: JsonObject): void {
  const call = Call.safeParse(message);
  for (const block of call.data?.message.content ?? []) {
    const write = Write.safeParse(block);
    if (write.success) written.set(write.data.id, write.data.input.content);
  }
}

function patchOf(
  { message, tool_use_result: { structuredPatch } }: z.infer<typeof Edit>,
  written: Map<string, string>,
) {
  if (structuredPatch.length > 0) return structuredPatch.map(hunkOf).join("\n");
  const [result] = message.content.flatMap((block) => Result.safeParse(block).data ?? []);
  const text = result && written.get(result.tool_use_id);
  if (text === undefined) return "";
  const lines = text.replace(/\n$/, "").split("\n");
  return hunkOf({
    oldStart: 0,
    oldLines: 0,
    newStart: 1,
    newLines: lines.length,
    lines: lines.map((each) => `+${each}`),
  });
}

function hunkOf({ lines, newLines, newStart, oldLines, oldStart }: z.infer<typeof Hunk>): string {
  const range = (start: number, count: number) => `${String(start)},${String(count)}`;
  return [`@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`, ...lines].join("\n");
}
