import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach } from "vitest";
import type { Work } from "../../../src/pack/manifest.ts";
import { packWork } from "../../../src/pack/pack-work.ts";
import { prepareWork } from "../../../src/pack/unpack-work.ts";
import { ENVIRONMENT, gitIn } from "../git-repository.ts";

/** Work in progress of a repository, packed and unpacked by the real git. */

const SESSION = "0b0e5a6c-7b1d-4f6e-9c2a-3d4e5f60718a";

class PackedWorkKit {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-packed-work-")));
  /** A new folder for each test. */
  top = "";

  folder(name: string): string {
    return mkdtempSync(join(this.root, `${name}-`));
  }

  write(files: Readonly<Record<string, string | Buffer>>, where = this.top): void {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(where, name)), { recursive: true });
      writeFileSync(join(where, name), content);
    }
  }

  /** Makes a repository with a commit. */
  begin(where = this.top): void {
    const files = { "a.txt": "a\n", "b.txt": "b\n", "run.sh": "#!/bin/sh\n", "gone.txt": "x\n", "deep/one.txt": "1\n" };
    this.write(files, where);
    const git = gitIn(where);
    git("init", "-q", "-b", "main");
    git("add", ".");
    git("commit", "-qm", "begin");
  }

  async find(cwd: string) {
    return packWork({ cwd, environment: ENVIRONMENT, wrapper: [], allowed: [] }, this.folder("scratch"));
  }

  async pack(cwd = this.top) {
    const packed = await this.find(cwd);
    if (!packed) throw new Error("nothing was packed");
    return packed;
  }

  async unpack({ bundle, work }: { bundle: string; work: Work }, to: string): Promise<string> {
    const place = { sessionId: SESSION, environment: ENVIRONMENT, scratch: this.folder("scratch") };
    return (await prepareWork(to, { ...place, work, bundle })).finish();
  }

  clone(): string {
    const to = join(this.folder("clone"), "c");
    execFileSync("git", ["clone", "-q", this.top, to], { env: ENVIRONMENT });
    return to;
  }
}

export function usePackedWork(): PackedWorkKit {
  const kit = new PackedWorkKit();
  beforeEach(() => {
    kit.top = kit.folder("work");
  });
  afterAll(() => rmSync(kit.root, { recursive: true, force: true }));
  return kit;
}

/** Returns all files but those of git, each with its right to run and its content. */
export function contents(where: string): Record<string, string> {
  const found = readdirSync(where, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(where.length + 1);
    if (name.startsWith(".git/") || entry.isDirectory()) return [];
    if (entry.isSymbolicLink()) return [[name, `-> ${readlinkSync(path)}`] as const];
    return [[name, `${String(lstatSync(path).mode & 0o100)} ${readFileSync(path, "base64")}`] as const];
  });
  return Object.fromEntries(found);
}

export const status = (where: string) => gitIn(where)("status", "--porcelain", "--branch");
