import { expect, it } from "vitest";
import { UnattendedClients, type FormClient } from "../../src/mcp/form-state.ts";

const CODEX: FormClient = { principal: "ann", sessionId: undefined, name: "codex", version: "1" };
const MINUTE = 60_000;

function noted() {
  let at = 0;
  const lines: unknown[] = [];
  const unattended = new UnattendedClients({ info: (_, fields) => void lines.push(fields) }, () => at);
  unattended.add(CODEX);
  return { lines, unattended, later: (ms: number) => (at += ms) };
}

it("a client that declines forms at once is shown none for the next ten minutes", () => {
  const { later, unattended } = noted();
  later(10 * MINUTE - 1);
  expect(unattended.has(CODEX)).toBe(true);
  unattended.add(CODEX);
  later(10 * MINUTE - 1);
  expect(unattended.has(CODEX)).toBe(true);
  later(1);
  expect(unattended.has(CODEX)).toBe(false);
});

it.each<[string, Partial<FormClient>]>([
  ["principal", { principal: "bob" }],
  ["protocol session", { sessionId: "s" }],
  ["name", { name: "other" }],
  ["version", { version: "2" }],
])("a client of another %s is a separate client", (_, other) => {
  const { unattended } = noted();
  expect(unattended.has({ ...CODEX })).toBe(true);
  expect(unattended.has({ ...CODEX, ...other })).toBe(false);
});

it("beyond 1,000 clients the oldest entry is dropped", () => {
  const { unattended } = noted();
  for (let each = 1; each < 1_000; each++) unattended.add({ ...CODEX, version: `1.${String(each)}` });
  unattended.add(CODEX);
  unattended.add({ ...CODEX, name: "one more" });
  expect([unattended.has(CODEX), unattended.has({ ...CODEX, version: "1.1" })]).toEqual([true, false]);
});

it("the log has a line about a client that declines forms, without the id of the protocol session", () => {
  const { lines, unattended } = noted();
  unattended.add({ principal: "bob", sessionId: "secret", name: "x".repeat(1_000), version: undefined });
  expect(lines).toEqual([
    { principal: "ann", client: "codex", version: "1", minutes: 10 },
    { principal: "bob", client: "x".repeat(100), version: "", minutes: 10 },
  ]);
});
