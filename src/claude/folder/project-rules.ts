import { join } from "node:path";
import { z } from "zod";
import type { SessionOptions } from "../../domain/options.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { isNamed } from "./trust.ts";

/**
 * Allow rules of `.claude/settings.json` count in Claude Code only where its own trust record names the folder; --trust-dir names it
 * to this server. The operator has let hooks of the same file run there, which nobody is asked about either: the rules are handed over.
 */

/** Far more than anybody writes by hand. */
const MAX_BYTES = 1_048_576;

const SettingsFile = z.looseObject({
  permissions: z.looseObject({ allow: z.array(z.string()).exactOptional() }).exactOptional(),
});

interface Project extends Pick<SessionOptions, "cwd" | "settingSources"> {
  /** Whether its settings are read at all. */
  readonly mayRun: boolean;
  /** A rule that allows Edit is a folder there that commands may write: the operator alone says which. */
  readonly isFenced: boolean;
}

/** Those of the folder, where each of the servers names it or a folder above it. */
export async function projectAllowRules(
  { cwd, isFenced, mayRun, settingSources = ["project"] }: Project,
  all: readonly { readonly trustDirs: readonly string[] }[],
): Promise<string[]> {
  if (!mayRun || isFenced || !settingSources.includes("project")) return [];
  for (const { trustDirs } of all) if (!(await isNamed(cwd, trustDirs))) return [];
  const text = await readSmall(join(cwd, ".claude", "settings.json"), MAX_BYTES).catch(() => "");
  return SettingsFile.safeParse(parsed(text)).data?.permissions?.allow ?? [];
}

/** Claude Code says itself what is wrong with a file that cannot be read. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
