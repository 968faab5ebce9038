import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import file from "./not-ours.json" with { type: "json" };

/** Which scenarios of the protocol's conformance suite a revision has for servers, and which of them are not ours. */

export const SUITE = "node_modules/@modelcontextprotocol/conformance";

export const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
const Revision = z.enum(REVISIONS);
export type Revision = z.infer<typeof Revision>;

/** The built server, or the fixtures behind our HTTP layer. */
const Subject = z.enum(["server", "fixtures"]);
export type Subject = z.infer<typeof Subject>;

const NotOurs = z.strictObject({
  on: Subject,
  revision: Revision,
  scenarios: z.array(z.string()).min(1),
  /** Exactly these fail; without them any may fail, except for the shape of messages. */
  checks: z.array(z.string()).min(1).exactOptional(),
  reason: z.string().min(1),
});
export type NotOurs = z.infer<typeof NotOurs>;

export const NOT_OURS: readonly NotOurs[] = z.array(NotOurs).parse(file);

export function notOurs(on: Subject, revision: Revision, scenario: string): NotOurs | undefined {
  const found = NOT_OURS.filter((each) => each.on === on && each.revision === revision);
  return found.find(({ scenarios }) => scenarios.includes(scenario));
}

/** What the revision requires, and then what the suite only reports: extensions, later and pending scenarios. */
export function scenariosOf(revision: Revision): string[] {
  const text = readFileSync(join(SUITE, "requirements", `${revision}.yaml`), "utf8");
  const [, required = ""] = /^server:\n((?: {2}.*\n|\n)+)/m.exec(text) ?? [];
  const listed = [...required.matchAll(/^ {2}- ([\w-]+)$/gm)];
  const reported = [...text.matchAll(/^ {2}- scenario: ([\w-]+)\n {4}leg: server$/gm)];
  if (listed.length === 0 || reported.length === 0) throw new Error(`the requirements of ${revision} read differently`);
  return [...listed, ...reported].map(([, name = ""]) => name);
}
