import { readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

/** A daemon outside a sandbox does no work for a client inside the sandbox. */

const world = useWorld({ agent: "stand-in" });
const MAIN = join(import.meta.dirname, "../../dist/cli/main.js");

it("a client without network access has a daemon of its own, whose sessions have no network either", async () => {
  const open = await world.shared();
  const prompt = scriptTag([{ text: "reached" }]);
  const cwd = world.folder();
  const reached = await open.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  expect(reached.result).toMatchObject({ result: "reached", isError: false });
  const [outside] = world.daemons();

  const main = join(world.folder(), "confined.mjs");
  const bwrap = `["--dev-bind", "/", "/", "--unshare-net", process.execPath, ${JSON.stringify(MAIN)}, ...process.argv.slice(2)]`;
  writeFileSync(
    main,
    `import { spawn } from "node:child_process";\nspawn("bwrap", ${bwrap}, { stdio: "inherit" }).on("exit", (code) => process.exit(code ?? 1));\n`,
  );
  // A `legacy` client starts a single process, and so a single sandbox.
  const confined = await world.shared({ client: "legacy", main });
  const tried = await confined.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  expect(tried.result?.isError).toBe(true);
  const daemons = world.daemons();
  expect(daemons).toHaveLength(2);
  const network = (pid: number) => readlinkSync(`/proc/${String(pid)}/ns/net`);
  expect(daemons.filter((pid) => network(pid) === network(process.pid))).toEqual([outside]);
  expect([open.stderr(), confined.stderr()]).toEqual(["", ""]);
});
