import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ENVIRONMENT, gitIn, repository } from "../kit/git-repository.ts";
import { canHang, hang } from "../kit/faults/hung-folder.ts";
import { shortened, useWatchedFolders, type WatchedFolder } from "../kit/sessions/watched-folder.ts";

const { copy, empty } = useWatchedFolders();

/** Command of the repository that leaves a file outside. */
const evil = (at: WatchedFolder) => `touch ${join(at.place, "was-run")}; cat`;
const config = (at: WatchedFolder, text: string) => at.append(".git/config", text);

const SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";

interface Attack {
  readonly title: string;
  /** Made during the turn, or before. */
  readonly make: (at: WatchedFolder) => void;
  /** Command of plain git that runs the program. */
  readonly plain: string[];
}

const ATTACKS: Attack[] = [
  {
    title: "a filter driver",
    make: (at) => {
      at.write(".git/info/attributes", "* filter=evil\n");
      config(at, `[filter "evil"]\n\tclean = "${evil(at)}"\n`);
    },
    plain: ["diff"],
  },
  {
    title: "a filter process in an included file",
    make: (at) => {
      at.write(".git/info/attributes", "* filter=evil\n");
      at.write("more", `[filter "evil"]\n\tprocess = "${evil(at)}"\n\trequired = true\n`);
      config(at, "[include]\n\tpath = ../more\n");
    },
    plain: ["diff"],
  },
  {
    title: "a file system monitor",
    make: (at) => config(at, `[core]\n\tfsmonitor = "${evil(at)}; true"\n`),
    plain: ["status"],
  },
  {
    title: "a hook after a change of the index",
    make: (at) => {
      at.write(".git/hooks/post-index-change", `#!/bin/sh\n${evil(at)} </dev/null\n`);
      execFileSync("chmod", ["+x", at.path(".git/hooks/post-index-change")]);
    },
    plain: ["update-index", "--really-refresh", "-q", "--force-write-index"],
  },
  {
    title: "an external diff",
    make: (at) => config(at, `[diff]\n\texternal = "${evil(at)}"\n`),
    plain: ["diff"],
  },
  {
    title: "a text converter and a diff driver",
    make: (at) => {
      at.write(".git/info/attributes", "* diff=evil\n");
      config(at, `[diff "evil"]\n\ttextconv = "${evil(at)}"\n\tcommand = "${evil(at)}"\n`);
    },
    plain: ["diff"],
  },
  {
    title: "a program that verifies signatures of commits",
    make: (at) => {
      at.write("gpg.sh", `#!/bin/sh\n${evil(at)} </dev/null\n`);
      execFileSync("chmod", ["+x", at.path("gpg.sh")]);
      config(at, `[log]\n\tshowSignature = true\n[gpg]\n\tprogram = ${at.path("gpg.sh")}\n`);
      const signed = at.git("cat-file", "commit", "HEAD").replace("\n\n", `\ngpgsig ${SIGNATURE}\n\n`);
      writeFileSync(at.path("signed"), signed);
      const commit = at.git("hash-object", "-t", "commit", "-w", at.path("signed")).trim();
      at.git("update-ref", "HEAD", commit);
    },
    plain: ["log"],
  },
  {
    title: "a summary of submodules",
    make: (at) => {
      at.write("inner/x", "");
      repository(at.path("inner"), "inner");
      at.git("add", "inner");
      at.git("commit", "-qm", "with a submodule");
      gitIn(at.path("inner"))("commit", "-qm", "moved", "--allow-empty");
      config(at, "[diff]\n\tsubmodule = diff\n\tignoreSubmodules = none\n[status]\n\tsubmoduleSummary = true\n");
      at.append("inner/.git/config", `[core]\n\tfsmonitor = "${evil(at)}; true"\n`);
    },
    plain: ["status"],
  },
  {
    title: "a text converter for a file in place of a submodule",
    make: (at) => {
      at.git("update-index", "--add", "--cacheinfo", `160000,${at.git("rev-parse", "HEAD").trim()},module`);
      at.git("commit", "-qm", "with a submodule");
      at.write("module", "text");
      at.write(".git/info/attributes", "module diff=evil\n");
      config(at, `[diff "evil"]\n\ttextconv = "${evil(at)}"\n`);
    },
    plain: ["diff"],
  },
];

const plainGit = (at: WatchedFolder, args: readonly string[]) => {
  try {
    execFileSync("git", ["-C", at.cwd, ...args], { env: ENVIRONMENT, stdio: "pipe" });
  } catch {
    // The program of the attack need not answer as git wants.
  }
};

describe.each(["before", "during"])("a comparison starts no program that a repository got %s the turn", (when) => {
  it.each(ATTACKS)("$title", async ({ make, plain }) => {
    const at = copy();
    at.write("b.txt", "dirty\n");
    const marker = join(at.place, "was-run");
    const begin = () => {
      make(at);
      rmSync(marker, { force: true });
    };
    if (when === "before") begin();
    const compared = await at.turn(() => {
      if (when === "during") begin();
      at.append("a.txt", "4\n");
      at.append("test/sums.test.ts", 'it("new", () => {});\n');
    });
    expect(existsSync(marker)).toBe(false);
    expect(shortened(compared)).toContain("changed a.txt +1 -0");
    expect(compared.by).toBe("tree");
    plainGit(at, plain);
    expect(existsSync(marker), "plain git runs the program").toBe(true);
  });
});

describe("a comparison shows nothing from outside the folder", () => {
  const allow = (at: WatchedFolder) => ({ confinement: { allowDirs: [at.cwd] } });

  it("a .git that the turn replaced by one that leads to another repository is not read", async () => {
    const [at, other] = [copy(), copy()];
    other.write("secret.txt", "s\n");
    other.commit("the secret");
    const compared = await at.turn(() => {
      rmSync(at.path(".git"), { recursive: true });
      at.write(".git", `gitdir: ${other.path(".git")}\n`);
    });
    expect(compared).toMatchObject({ by: "tools", complete: false, commits: [], files: [] });
    expect(JSON.stringify(compared)).not.toContain(other.head());
  });

  it("objects that the turn borrows from another repository are not read", async () => {
    const [at, other] = [copy(), copy()];
    other.write("secret.txt", "s\n");
    const secret = other.commit("the secret");
    const compared = await at.turn(() => {
      at.write(".git/objects/info/alternates", `${other.path(".git/objects")}\n`);
      at.write(".git/refs/heads/main", `${secret}\n`);
    }, allow(at));
    expect(compared).toMatchObject({ by: "tools", complete: false, commits: [] });
    expect(JSON.stringify(compared)).not.toContain("secret");
  });

  it("a folder of dirty files that the turn replaced by a link is not followed", async () => {
    const [at, outside] = [copy(), empty()];
    at.write("new/secret.txt", "mine\n");
    outside.write("secret.txt", "1\n2\n3\n4\n5\n");
    const compared = await at.turn(() => {
      rmSync(at.path("new"), { recursive: true });
      symlinkSync(outside.cwd, at.path("new"));
    });
    expect(shortened(compared)).toEqual(["added new", "deleted new/secret.txt +0 -1"]);
  });

  it("the session's folder replaced by a link to one that it may not use is refused", async () => {
    const [at, outside] = [copy(), copy()];
    const compared = await at.turn(() => {
      renameSync(at.cwd, join(at.place, "former"));
      symlinkSync(outside.cwd, at.cwd);
    }, allow(at));
    expect(compared).toMatchObject({ by: "tools", complete: false, files: [] });
  });

  it("a submodule whose .git leads elsewhere keeps its commit to itself", async () => {
    const [at, other] = [copy(), copy()];
    mkdirSync(at.path("inner"));
    repository(at.path("inner"), "inner");
    at.commit("with a submodule");
    const secret = other.commit("the secret");
    const compared = await at.turn(() => {
      rmSync(at.path("inner/.git"), { recursive: true });
      at.write("inner/.git", `gitdir: ${other.path(".git")}\n`);
    });
    expect(compared).toMatchObject({ complete: false, files: [] });
    expect(JSON.stringify(compared)).not.toContain(secret);
  });

  it("a worktree outside the session's folder is not looked at", async () => {
    const [at, other] = [copy(), empty()];
    const compared = await at.turn(() => {
      at.git("worktree", "add", "-q", "-b", "w", join(other.cwd, "w"));
      other.write("w/new.txt", "1\n");
    });
    expect(compared).toMatchObject({ files: [], complete: true });
  });
});

it.runIf(canHang())("a folder that hangs delays neither other folders nor the server by more than 3 s", async () => {
  const [at, other] = [copy(), copy()];
  const { session, watch } = at.watch({ folders: [other.cwd], dependencies: { compareMs: 3_000 } });
  const before = await watch.look(session, "k");
  at.append("a.txt", "4\n");
  const hung = hang(other.cwd);
  try {
    const since = performance.now();
    const compared = await watch.compare(session, before, "k");
    expect(performance.now() - since).toBeLessThan(3_300);
    expect(shortened(compared)).toEqual(["changed a.txt +1 -0"]);
    expect(compared).toMatchObject({ by: "tree", complete: false });
    expect(compared.notSeen).toContainEqual(expect.stringMatching(/has not answered/));
  } finally {
    hung.release();
    await watch.forget("k");
  }
});

it("replaced objects and a forged list of unchanged files hide no change", async () => {
  const at = copy();
  const before = at.head();
  at.write("a.txt", "other\n");
  const after = at.commit("other");
  at.git("reset", "-q", "--hard", before);
  const compared = await at.turn(() => {
    at.write("a.txt", "other\n");
    at.git("replace", before, after);
    at.git("config", "core.ignoreStat", "true");
    at.git("config", "core.untrackedCache", "true");
  });
  expect(shortened(compared)).toEqual(["changed a.txt +1 -3"]);
  expect(compared.gitFiles).toEqual(["config"]);
});
