import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

import { namespaceRefusal, sandboxProblem } from "../../src/security/sandbox.ts";

/** Problems of Claude Code's sandbox on machines with different `programs`. */

const root = mkdtempSync(join(tmpdir(), "sandbox-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function machine(programs: Readonly<Record<string, string>>): Record<string, string> {
  const bin = mkdtempSync(join(root, "bin-"));
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  return { PATH: bin };
}

it("missing programs of the sandbox are named, with the command that installs them", async () => {
  expect(await sandboxProblem(machine({}), "linux")).toContain(
    "bwrap and socat cannot be found in PATH. Install what is missing (Debian and Ubuntu: apt-get install bubblewrap socat).",
  );
  expect(await sandboxProblem(machine({ bwrap: "exit 0" }), "linux")).toMatch(/^socat cannot be found/);
  expect(await namespaceRefusal(machine({}))).toBe("bwrap is not installed");
});

it("a bwrap that may make no namespaces is reported with its own error", async () => {
  const programs = { bwrap: 'echo "bwrap: No permissions" >&2; exit 1', socat: "" };
  expect(await sandboxProblem(machine(programs), "linux")).toMatch(
    /^bwrap cannot make namespaces here \(.*No permissions.*\)\. Allow unprivileged user namespaces/,
  );
  expect(await sandboxProblem(machine({ bwrap: "exit 0", socat: "" }), "linux")).toBeUndefined();
});

it("systems other than Linux and macOS have no sandbox", async () => {
  expect(await sandboxProblem({}, "win32")).toContain("on Linux (WSL 2 included) and macOS only");
});

it.runIf(process.platform === "linux")("a macOS without Seatbelt is reported with the missing program", async () => {
  expect(await sandboxProblem({}, "darwin")).toContain("/usr/bin/sandbox-exec, a part of macOS, is missing");
});
