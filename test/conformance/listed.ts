import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import file from "./not-ours.json" with { type: "json" };

/** Scenarios of the protocol's conformance suite for servers, by revision, and scenarios that do not apply to us. */

export const SUITE = "node_modules/@modelcontextprotocol/conformance";

export const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
const Revision = z.enum(REVISIONS);
export type Revision = z.infer<typeof Revision>;

/** `server`: the built server. `fixtures`: the fixtures behind our HTTP layer. */
const Subject = z.enum(["server", "fixtures"]);
export type Subject = z.infer<typeof Subject>;

const NotOurs = z.strictObject({
  on: Subject,
  revision: Revision,
  scenarios: z.array(z.string()).min(1),
  /** Checks that fail, and no others. Without `checks`, any check may fail except `wire-schema-valid`. */
  checks: z.array(z.string()).min(1).exactOptional(),
  reason: z.string().min(1),
});
export type NotOurs = z.infer<typeof NotOurs>;

export const NOT_OURS: readonly NotOurs[] = z.array(NotOurs).parse(file);

export function notOurs(on: Subject, revision: Revision, scenario: string): NotOurs | undefined {
  const found = NOT_OURS.filter((each) => each.on === on && each.revision === revision);
  return found.find(({ scenarios }) => scenarios.includes(scenario));
}

/** Returns scenarios required by the revision, then those only reported: extensions, later and pending scenarios. */
export function scenariosOf(revision: Revision): string[] {
  const text = readFileSync(join(SUITE, "requirements", `${revision}.yaml`), "utf8");
  const [, required = ""] = /^server:\n((?: {2}.*\n|\n)+)/m.exec(text) ?? [];
  const listed = [...required.matchAll(/^ {2}- ([\w-]+)$/gm)];
  const reported = [...text.matchAll(/^ {2}- scenario: ([\w-]+)\n {4}leg: server$/gm)];
  if (listed.length === 0 || reported.length === 0) throw new Error(`the requirements of ${revision} read differently`);
  return [...listed, ...reported].map(([, name = ""]) => name);
}
