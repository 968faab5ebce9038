import { appendFileSync, chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { hostileRepository } from "../kit/git-repository.ts";

let hostile: Awaited<ReturnType<typeof hostileRepository>>;
beforeAll(async () => {
  hostile = await hostileRepository();
});
afterAll(async () => hostile.world.close());

describe("`claude_code_session` `diff` starts no program of the repository", () => {
  /** Attacks by name. With plain git, each attack runs the marker. */
  const variants: readonly (readonly [string, () => void])[] = [
    [
      "a filter driver",
      () => {
        hostile.attributes("* filter=evil\n");
        hostile.config(`[filter "evil"]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
    [
      "a filter driver named a=b",
      () => {
        hostile.attributes("* filter=a=b\n");
        hostile.config(`[filter "a=b"]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
    [
      "a filter driver with an empty name",
      () => {
        hostile.attributes("* filter=\n");
        hostile.config(`[filter ""]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
    [
      "a filter driver with dots in its name",
      () => {
        hostile.attributes("* filter=a.clean.b\n");
        hostile.config(`[FILTER "a.clean.b"]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
    [
      "a filter driver whose name is not UTF-8",
      () => {
        const name = Buffer.from([0x61, 0xff]);
        writeFileSync(join(hostile.cwd, ".git", "info", "attributes"), Buffer.concat([Buffer.from("* filter="), name]));
        const lines = [Buffer.from('[filter "'), name, Buffer.from(`"]\n\tclean = "${hostile.touch}"\n`)];
        appendFileSync(join(hostile.cwd, ".git", "config"), Buffer.concat(lines));
      },
    ],
    [
      "a filter process",
      () => {
        hostile.attributes("* filter=evil\n");
        hostile.config(`[filter "evil"]\n\tprocess = "touch ${hostile.marker}"\n\trequired = true\n`);
      },
    ],
    [
      "a filter driver in an included file",
      () => {
        hostile.attributes("* filter=evil\n");
        writeFileSync(join(hostile.cwd, "more"), `[filter "evil"]\n\tclean = "${hostile.touch}"\n`);
        hostile.config("[include]\n\tpath = ../more\n");
      },
    ],
    [
      "a filter driver in the work tree's own configuration",
      () => {
        hostile.attributes("* filter=evil\n");
        hostile.git("config", "extensions.worktreeConfig", "true");
        writeFileSync(join(hostile.cwd, ".git", "config.worktree"), `[filter "evil"]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
    ["a file system monitor", () => hostile.config(`[core]\n\tfsmonitor = "touch ${hostile.marker}; true"\n`)],
    ["an external diff", () => hostile.config(`[diff]\n\texternal = "touch ${hostile.marker}; true"\n`)],
    [
      "a text converter",
      () => {
        hostile.attributes("* diff=evil\n");
        hostile.config(`[diff "evil"]\n\ttextconv = "touch ${hostile.marker}; cat"\n`);
      },
    ],
    [
      "a diff driver",
      () => {
        hostile.attributes("* diff=evil\n");
        hostile.config(`[diff "evil"]\n\tcommand = "touch ${hostile.marker}; true"\n`);
      },
    ],
    [
      "a file system monitor of a submodule that has changes",
      () => {
        hostile.moveSubmodule();
        hostile.config("[diff]\n\tsubmodule = diff\n\tignoreSubmodules = none\n");
        appendFileSync(
          join(hostile.cwd, "inner", ".git", "config"),
          `[core]\n\tfsmonitor = "touch ${hostile.marker}; true"\n`,
        );
      },
    ],
    [
      "an upload-pack of a promisor remote",
      () => {
        hostile.removeBlob();
        hostile.config(
          `[remote "origin"]\n\turl = ${hostile.elsewhere}\n\tuploadpack = "touch ${hostile.marker}; git-upload-pack"\n`,
        );
      },
    ],
    [
      "an ssh command to a promisor remote",
      () => {
        hostile.removeBlob();
        hostile.config(
          `[remote "origin"]\n\turl = ssh://localhost/none\n[core]\n\tsshCommand = "touch ${hostile.marker}; false"\n`,
        );
      },
    ],
    [
      "a git proxy to a promisor remote",
      () => {
        hostile.removeBlob();
        const proxy = join(hostile.cwd, "proxy.sh");
        writeFileSync(proxy, `#!/bin/sh\ntouch ${hostile.marker}\n`);
        chmodSync(proxy, 0o755);
        hostile.config(`[remote "origin"]\n\turl = git://localhost/none\n[core]\n\tgitProxy = ${proxy}\n`);
      },
    ],
    [
      "a promisor remote that is a command",
      () => {
        hostile.removeBlob();
        const url = `ext::sh -c touch% ${hostile.marker}`;
        hostile.config(`[remote "origin"]\n\turl = ${url}\n[protocol "ext"]\n\tallow = always\n`);
      },
    ],
    [
      "a file system monitor of a bare layout",
      () => {
        hostile.layBare();
        appendFileSync(join(hostile.cwd, "config"), `[core]\n\tfsmonitor = "touch ${hostile.marker}; true"\n`);
      },
    ],
    [
      "a filter driver of a bare layout",
      () => {
        hostile.layBare();
        writeFileSync(join(hostile.cwd, "info", "attributes"), "* filter=evil\n");
        appendFileSync(join(hostile.cwd, "config"), `[filter "evil"]\n\tclean = "${hostile.touch}"\n`);
      },
    ],
  ];

  it.each(variants)("a diff does not run %s", async (_, make) => {
    hostile.begin();
    make();
    const told = await hostile.diff();
    expect(existsSync(hostile.marker)).toBe(false);
    expect(told).toMatch(/\+changed|"refused"/);
    try {
      hostile.git("diff", "HEAD", "--", ".");
    } catch {
      // Git may fail after the marker has run.
    }
    expect(existsSync(hostile.marker)).toBe(true);
  });

  it("a diff does not run the git in the session's folder, although PATH leads there", async () => {
    hostile.begin();
    const own = join(hostile.cwd, "node_modules", ".bin");
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "git"), `#!/bin/sh\ntouch ${hostile.marker}\n`);
    chmodSync(join(own, "git"), 0o755);
    const env = { PATH: `${own}:.:${process.env["PATH"] ?? ""}` };
    writeFileSync(join(hostile.cwd, "git"), `#!/bin/sh\ntouch ${hostile.marker}\n`);
    chmodSync(join(hostile.cwd, "git"), 0o755);
    const other = await hostile.world.server({ env });
    const told = await other.call("claude_code_session", { action: "diff", sessionId: hostile.sessionId });
    expect(JSON.stringify(told)).toContain("+changed");
    expect(existsSync(hostile.marker)).toBe(false);
  });
});
