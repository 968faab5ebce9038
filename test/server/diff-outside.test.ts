import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { gitIn, hostileRepository, repository } from "../kit/git-repository.ts";

let hostile: Awaited<ReturnType<typeof hostileRepository>>;
beforeAll(async () => {
  hostile = await hostileRepository();
});
afterAll(async () => hostile.world.close());

describe("`claude_code_session` `diff` shows no repository from outside the folder", () => {
  const readings: readonly (readonly [string, () => void])[] = [
    [
      "named by a .git file",
      () => {
        rmSync(join(hostile.cwd, ".git"), { recursive: true });
        writeFileSync(join(hostile.cwd, ".git"), `gitdir: ${join(hostile.elsewhere, ".git")}\n`);
      },
    ],
    [
      "linked as .git",
      () => {
        rmSync(join(hostile.cwd, ".git"), { recursive: true });
        symlinkSync(join(hostile.elsewhere, ".git"), join(hostile.cwd, ".git"));
      },
    ],
    [
      "named by commondir",
      () => {
        for (const name of ["objects", "refs", "config"]) rmSync(join(hostile.cwd, ".git", name), { recursive: true });
        writeFileSync(join(hostile.cwd, ".git", "commondir"), `${join(hostile.elsewhere, ".git")}\n`);
      },
    ],
    [
      "whose folder of objects is linked in",
      () => {
        rmSync(join(hostile.cwd, ".git", "objects"), { recursive: true });
        symlinkSync(join(hostile.elsewhere, ".git", "objects"), join(hostile.cwd, ".git", "objects"));
        writeFileSync(join(hostile.cwd, ".git", "refs", "heads", "main"), head());
      },
    ],
    [
      "whose objects are linked in, folder by folder",
      () => {
        const own = join(hostile.cwd, ".git", "objects");
        const others = join(hostile.elsewhere, ".git", "objects");
        rmSync(own, { recursive: true });
        mkdirSync(own);
        for (const name of readdirSync(others)) symlinkSync(join(others, name), join(own, name));
        writeFileSync(join(hostile.cwd, ".git", "refs", "heads", "main"), head());
      },
    ],
    [
      "whose objects are linked in, one by one",
      () => {
        const own = join(hostile.cwd, ".git", "objects");
        const others = join(hostile.elsewhere, ".git", "objects");
        rmSync(own, { recursive: true });
        for (const folder of readdirSync(others)) {
          mkdirSync(join(own, folder), { recursive: true });
          for (const name of readdirSync(join(others, folder))) {
            symlinkSync(join(others, folder, name), join(own, folder, name));
          }
        }
        writeFileSync(join(hostile.cwd, ".git", "refs", "heads", "main"), head());
      },
    ],
    ["named by alternates", () => alternate(join(hostile.elsewhere, ".git", "objects"))],
    ["named by alternates in quotes", () => alternate(`"${join(hostile.elsewhere, ".git", "objects")}"`)],
    [
      "named by an alternate of an alternate",
      () => {
        const between = join(hostile.cwd, "between");
        mkdirSync(join(between, "info"), { recursive: true });
        writeFileSync(join(between, "info", "alternates"), `${join(hostile.elsewhere, ".git", "objects")}\n`);
        alternate(between);
      },
    ],
  ];
  const head = () => gitIn(hostile.elsewhere)("rev-parse", "HEAD");
  const alternate = (line: string) => {
    writeFileSync(join(hostile.cwd, ".git", "objects", "info", "alternates"), `${line}\n`);
    writeFileSync(join(hostile.cwd, ".git", "refs", "heads", "main"), head());
  };

  it.each(readings)("a repository %s is refused", async (_, make) => {
    hostile.begin();
    make();
    expect(await hostile.diff()).toContain('"refused"');
    expect(await hostile.diff()).not.toContain("the secret");
    expect(hostile.git("diff", "HEAD")).toContain("the secret");
  });

  it("a submodule whose .git names an outside repository is refused", async () => {
    hostile.begin();
    hostile.moveSubmodule();
    const inner = join(hostile.cwd, "inner", ".git");
    rmSync(inner, { recursive: true });
    writeFileSync(inner, `gitdir: ${join(hostile.elsewhere, ".git")}\n`);
    expect(await hostile.diff()).toContain('"refused":"The .git of its submodule');
    expect(hostile.git("diff", "HEAD")).toContain(head().trim());
  });

  it("a repository that claims the folder as part of its work tree is refused", async () => {
    hostile.begin();
    hostile.config(`[core]\n\tworktree = ${dirname(hostile.cwd)}\n`);
    expect(await hostile.diff()).toContain('"refused"');
  });
});

describe("`claude_code_session` `diff` in linked repositories", () => {
  const linked = () => {
    const main = hostile.world.folder();
    repository(main, "before");
    for (const name of readdirSync(hostile.cwd)) rmSync(join(hostile.cwd, name), { recursive: true, force: true });
    return gitIn(main);
  };

  it("a diff is shown in a linked work tree that its repository knows", async () => {
    linked()("worktree", "add", "-q", "--force", hostile.cwd);
    writeFileSync(join(hostile.cwd, "a.txt"), "changed\n");
    expect(await hostile.diff()).toContain("+changed");
  });

  it("a diff is shown in a submodule", async () => {
    const outer = linked();
    const main = outer("rev-parse", "--show-toplevel").trim();
    outer("-c", "protocol.file.allow=always", "submodule", "add", "-q", hostile.elsewhere, "inner");
    const inner = join(main, "inner");
    const prompt = scriptTag([{ text: "one" }]);
    const { sessionId: other } = await hostile.server.call("claude_code", { prompt, cwd: inner, waitMs: 40_000 });
    writeFileSync(join(inner, "a.txt"), "changed\n");
    const told = await hostile.server.call("claude_code_session", { action: "diff", sessionId: other });
    expect(JSON.stringify(told)).toContain("+changed");
  });
});
