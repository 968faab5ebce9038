import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { approverFields } from "../../src/config/approvals/approver-fields.ts";
import { CONFIG_FILE, SETTINGS } from "../../src/config/schema.ts";

/** Guards against settings without effect: a setting that no code reads is accepted and ignored. */

const SOURCES = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(`src/${name}`, "utf8"));

/** True if src reads `key` as a member, by destructuring, or in the proxy's table of variables. */
function isRead(key: string): boolean {
  const member = new RegExp(String.raw`(?:[cC]onfig|limits|settings)\??\.${key}\b`);
  const pattern = new RegExp(String.raw`\{[^{}]*\b${key}\b[^{};]*\}[\s\w,]*\}?(?::|\s=)[^;=]*?(?:[cC]onfig|Settings)`);
  const byProxy = new RegExp(String.raw`variable: "\w+",\s*key: "${key}"`);
  return SOURCES.some((text) => member.test(text) || pattern.test(text) || byProxy.test(text));
}

it("every setting is read somewhere", () => {
  // Skips `approverFields`, passed to approvers as a whole, and `CONFIG_FILE`, read before settings exist.
  const others = [...Object.keys(approverFields), CONFIG_FILE.key];
  const keys = SETTINGS.map(({ key }) => key).filter((key) => !others.includes(key));
  expect(keys.filter((key) => !isRead(key))).toEqual([]);
  expect(isRead("noSuchSetting")).toBe(false);
});
