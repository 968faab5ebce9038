import { isAbsolute } from "node:path";
import { z } from "zod";
import { Verify } from "../domain/verification.ts";
import { json } from "./setting.ts";

/** The operator's default verification of sessions, by folder. */

const { attempts, commands, ownTurns, timeoutMs } = Verify.shape;

const FolderVerification = z.strictObject({
  folder: z.string().refine((path) => isAbsolute(path), "must be an absolute path"),
  commands,
  attempts: attempts.exactOptional(),
  timeoutMs: timeoutMs.exactOptional(),
  ownTurns,
});
export type FolderVerification = z.infer<typeof FolderVerification>;

/** Maximum number of folders. */
const MAX_FOLDERS = 100;

export const verifyField = json(
  z.array(FolderVerification).max(MAX_FOLDERS).default([]).readonly(),
  {
    flag: "verify",
    variable: "CLAUDE_CODE_MCP_VERIFY",
    meaning:
      "Commands that verify each turn, by folder of the session. They also hold in folders inside. The deepest folder counts, by real paths. A caller's own verify replaces the commands, but cannot switch them off. ownTurns: also verify turns that Claude Code begins by itself. Sessions that --sandbox required confines are not verified. See docs/receipts.md.",
  },
  "a JSON list of {folder, commands} with optional attempts, timeoutMs and ownTurns",
);
