import { describe, expect, it } from "vitest";
import type { Verify } from "../../src/domain/verification.ts";
import { promptCommand, verifyCommand } from "../../src/engine/session/build-command.ts";
import { Placement } from "../../src/engine/placement.ts";
import { planSession } from "../../src/engine/session/records.ts";
import { OPEN_GATE, OPERATOR } from "../kit/sessions/open-gate.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { ScriptedRuntime } from "../kit/step/scripted-runtime.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";

/** Places where commands of a verification come from, and where they are refused. */

const OWN: Verify = { commands: ["npm test"], attempts: 2, timeoutMs: 1_000 };
const DEFAULT: Verify = { commands: ["make check"], attempts: 1, timeoutMs: 600_000, ownTurns: true };
const defaultVerify = async (cwd: string) => Promise.resolve(cwd === "/repo" ? DEFAULT : undefined);

const under = (sandbox: "off" | "required") => ({
  ...OPERATOR,
  gate: { ...OPEN_GATE, sandbox },
  runtime: new ScriptedRuntime(),
  placement: new Placement({ backend: memoryStore(new ManualClock()).connect("one"), clock: new ManualClock() }),
  defaultVerify,
});
const planned = async (cwd: string, sandbox: "off" | "required", own?: Verify) =>
  planSession(under(sandbox), "local", { spec: { cwd, ...(own && { verify: own }) }, inherited: {} });

describe("the operator's commands for a folder", () => {
  it("a session that begins in the folder gets the operator's commands, unless it has its own", async () => {
    expect(await planned("/repo", "off")).toMatchObject({ spec: { verify: DEFAULT }, unused: [] });
    expect(await planned("/repo", "off", OWN)).toMatchObject({ spec: { verify: OWN }, unused: [] });
    expect((await planned("/elsewhere", "off")).spec).toEqual({ cwd: "/elsewhere" });
  });

  it("a session in the sandbox begins without the operator's commands, and its caller learns why", async () => {
    const { spec, unused } = await planned("/repo", "required");
    expect(spec).toEqual({ cwd: "/repo" });
    expect(unused).toEqual([expect.stringMatching(/^verify: .* because the sandbox is Claude Code's own/)]);
    expect((await planned("/elsewhere", "required")).unused).toEqual([]);
  });
});

describe("commands for one turn", () => {
  const record = (verify?: Verify) => new FakeEngine().add("s1", { cwd: "/repo", ...(verify && { verify }) }).record();
  const refused = expect.objectContaining({
    code: "PERMISSION_DENIED",
    message: expect.stringContaining("verify: is not allowed on this server") as string,
  }) as Error;

  it("commands with a prompt are refused in the sandbox, and otherwise go with the prompt", async () => {
    const request = { text: "Go.", verify: OWN };
    expect((await promptCommand(under("off"), "local", record(), request)).data).toMatchObject({ verify: OWN });
    await expect(promptCommand(under("required"), "local", record(), request)).rejects.toEqual(refused);
    await expect(promptCommand(under("required"), "local", record(), { text: "Go." })).resolves.toBeDefined();
  });

  it("commands on demand are those given, or the session's, and are refused in the sandbox or if there are none", () => {
    const by = "caller";
    expect(verifyCommand(under("off"), record(), { by, verify: OWN }).data).toMatchObject({ verify: OWN });
    expect(verifyCommand(under("off"), record(DEFAULT), { by }).data).not.toHaveProperty("verify");
    expect(() => verifyCommand(under("off"), record(), { by })).toThrow("commands: is required");
    expect(() => verifyCommand(under("required"), record(DEFAULT), { by })).toThrow(refused);
  });
});
