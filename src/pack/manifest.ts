import { z } from "zod";
import { Payer } from "../domain/process.ts";

/** Description of a packed session: the first part of the file. */

const Commit = z.string().regex(/^[\da-f]{40}(?:[\da-f]{24})?$/);
/** Path in a repository. git refuses paths that leave it. */
const RepositoryPath = z.string().max(4_096);

/** Repository of the session's folder. */
export const Work = z.object({
  /** Name of its folder. */
  name: z.string().max(255),
  /** Folder of the session in the repository, "" for its top. */
  folder: RepositoryPath.regex(/^(?!\/)(?!(?:.*\/)?\.\.?(?:\/|$))[^\0\\]*$/),
  format: z.enum(["sha1", "sha256"]),
  /** Commit of `HEAD`; absent before the first one. */
  commit: Commit.exactOptional(),
  /** Branch of `HEAD`; absent if detached. */
  branch: z.string().max(1_000).exactOptional(),
  /** Address of the remote `origin`, if it names no program and holds no password. */
  origin: z.string().max(4_096).exactOptional(),
  /** False if a merge was under way, so that staged files are not told apart. */
  hasIndex: z.boolean(),
  /** Commits whose parents are missing, in a shallow clone. */
  shallow: z.array(Commit).max(100_000),
  submodules: z.array(z.object({ path: RepositoryPath, commit: Commit })).max(10_000),
});
export type Work = z.infer<typeof Work>;

export const Manifest = z.object({
  /** Version of claude-agents-mcp. */
  version: z.string().max(100),
  packedAt: z.number().int().min(0),
  sessionId: z.uuid(),
  title: z.string().max(10_000).exactOptional(),
  createdAt: z.number().int().min(0),
  /** Stored forms, with the version of their format. */
  options: z.string().max(2_000_000),
  state: z.string().max(2_000_000),
  /** Payer of the session, and its account as a digest. */
  payer: z.object({ paidBy: z.string().max(1_000), payer: Payer.exactOptional() }).exactOptional(),
  /** Id of the conversation; absent if Claude Code has kept none. */
  transcriptId: z.uuid().exactOptional(),
  work: Work.exactOptional(),
  /** Sentences on what is not packed. */
  leftOut: z.array(z.string().max(20_000)).max(1_000),
});
export type Manifest = z.infer<typeof Manifest>;

/** Names of the parts. Files of the conversation follow `CONVERSATION`. */
export const PARTS = { manifest: "manifest.json", log: "log.jsonl", work: "work.bundle" } as const;
export const CONVERSATION = "conversation/";

/** Line of the log: an event in its stored form. */
export const LogLine = z.object({ id: z.number().int(), at: z.number().min(0), event: z.string() });

export const MAX_MANIFEST_BYTES = 8 * 1024 ** 2;
