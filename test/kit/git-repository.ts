import { execFileSync } from "node:child_process";
import { appendFileSync, cpSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { scriptTag } from "../../src/demo/model/script.ts";
import { createWorld } from "./world.ts";

export const ENVIRONMENT = {
  PATH: process.env["PATH"] ?? "",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.org",
  GIT_CONFIG_GLOBAL: "/dev/null",
};

export const gitIn =
  (folder: string) =>
  (...args: string[]): string =>
    execFileSync("git", ["-C", folder, ...args], { env: ENVIRONMENT, stdio: "pipe", encoding: "utf8" });

/** Creates a repository with a commit and an uncommitted change. */
export function repository(folder: string, text: string): void {
  const git = gitIn(folder);
  writeFileSync(join(folder, "a.txt"), `${text}\n`);
  writeFileSync(join(folder, "b.txt"), "b\n");
  git("init", "-q", "-b", "main");
  git("add", ".");
  git("commit", "-qm", "begin");
  writeFileSync(join(folder, "a.txt"), "changed\n");
  utimesSync(join(folder, "a.txt"), 1, 1);
}

/** Starts a session whose folder is a repository; each test recreates the repository (`begin`) and makes it hostile. */
export async function hostileRepository() {
  const world = await createWorld({ agent: "stand-in" });
  const [cwd, elsewhere, place, template] = [world.folder(), world.folder(), world.folder(), world.folder()];
  const marker = join(place, "was-run");
  const [userConfig, stranger] = [join(place, "gitconfig"), join(place, "is-a-stranger")];
  const bin = join(place, "bin");
  mkdirSync(bin);
  const assume = `[ -e ${stranger} ] && export GIT_TEST_ASSUME_DIFFERENT_OWNER=1`;
  const path = ENVIRONMENT.PATH;
  writeFileSync(join(bin, "git"), `#!/bin/sh\n${assume}\nPATH='${path}' exec git "$@"\n`, { mode: 0o755 });
  const server = await world.server({ env: { GIT_CONFIG_GLOBAL: userConfig, PATH: `${bin}:${path}` } });
  const git = gitIn(cwd);
  const { sessionId } = await server.call("claude_code", {
    prompt: scriptTag([{ text: "one" }]),
    cwd,
    waitMs: 40_000,
  });
  repository(elsewhere, "the secret");
  repository(template, "before");
  const dotGit = (...names: string[]) => join(cwd, ".git", ...names);
  return {
    world,
    server,
    sessionId,
    cwd,
    /** Another repository, which no answer may show; its last commit holds "the secret". */
    elsewhere,
    /** File created by any program of the repository that runs; `touch` is the command. */
    marker,
    touch: `touch ${marker}; cat`,
    /** The user's own configuration of git; no file at first. */
    userConfig,
    /** File that makes git treat every repository as owned by another user. */
    stranger,
    git,
    dotGit,
    begin() {
      for (const name of readdirSync(cwd)) rmSync(join(cwd, name), { recursive: true, force: true });
      for (const file of [marker, userConfig, stranger]) rmSync(file, { force: true });
      cpSync(template, cwd, { recursive: true, preserveTimestamps: true });
    },
    diff: async () => JSON.stringify(await server.call("claude_code_session", { action: "diff", sessionId })),
    config: (text: string) => {
      appendFileSync(dotGit("config"), text);
    },
    attributes: (text: string) => {
      writeFileSync(dotGit("info", "attributes"), text);
    },
    /** Adds a submodule with a commit other than the recorded one, and with uncommitted changes. */
    moveSubmodule() {
      const inner = join(cwd, "inner");
      mkdirSync(inner);
      repository(inner, "inner");
      git("add", "inner");
      git("commit", "-qm", "with a submodule");
      gitIn(inner)("commit", "-qm", "moved", "--allow-empty");
    },
    /** Removes a blob of the last commit from the object store. */
    removeBlob() {
      const blob = git("rev-parse", "HEAD:a.txt").trim();
      rmSync(dotGit("objects", blob.slice(0, 2), blob.slice(2)));
      git("config", "extensions.partialClone", "origin");
      git("config", "remote.origin.promisor", "true");
      git("config", "core.repositoryFormatVersion", "1");
    },
    /** Moves the content of `.git` into the folder itself: git then needs no `.git`. */
    layBare() {
      for (const name of ["HEAD", "config", "index", "objects", "refs", "info"]) {
        renameSync(dotGit(name), join(cwd, name));
      }
      rmSync(dotGit(), { recursive: true });
      for (const [key, value] of [
        ["core.bare", "false"],
        ["core.worktree", "."],
      ]) {
        git("config", "--file", join(cwd, "config"), String(key), String(value));
      }
    },
  };
}
