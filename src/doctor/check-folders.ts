import { constants, type Stats } from "node:fs";
import { access, chmod, lstat, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isAlive } from "../claude/supervise/tree.ts";
import { childEnvironment, configFolder } from "../claude/child-environment.ts";
import { isTrusted, findExecutableSettings } from "../claude/folder/trust.ts";
import { logFolder } from "../daemon/start-daemon.ts";
import { counted, megabytes, FIX_COMMAND, quoted, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** Checks folders: state folder, disk space, temporary files, and trust of the current folder. */

export async function checkStateFolder({ stateFolder: folder }: Machine): Promise<Finding[]> {
  const found = await stat(folder).catch(ifMissing);
  if (!found) return [await checkCreatable(folder)];
  const problem = ownerProblem(folder, found) ?? (await findWriteProblem(folder));
  if (problem) return [problem];
  const open = process.platform === "win32" ? [] : await findOpenToOthers(folder, found);
  if (open.length > 0) return open;
  return [{ id: "state-folder", level: "ok", text: `${folder} is yours alone and can be written.` }];
}

/** Checks whether the first session can create the state folder. */
async function checkCreatable(folder: string): Promise<Finding> {
  const above = await nearestExisting(dirname(folder));
  try {
    await access(above, constants.W_OK);
    return {
      id: "state-folder",
      level: "ok",
      text: `There is no state folder yet; the first session creates ${folder}.`,
    };
  } catch (error) {
    const text = `The state folder ${folder} cannot be created: ${reason(error)}.`;
    return { id: "state-folder", level: "error", text, fix: `chmod u+rwx ${quoted(above)}` };
  }
}

async function nearestExisting(folder: string): Promise<string> {
  const isThere = await stat(folder).then(
    () => true,
    () => false,
  );
  return isThere || folder === dirname(folder) ? folder : nearestExisting(dirname(folder));
}

function ownerProblem(folder: string, found: Stats): Finding | undefined {
  if (!found.isDirectory()) {
    const text = `${folder} is not a folder.`;
    return { id: "state-folder", level: "error", text, fix: `mv ${quoted(folder)} ${quoted(`${folder}.old`)}` };
  }
  const own = process.geteuid?.();
  if (own === undefined || found.uid === own) return undefined;
  const text = `${folder} belongs to the user with number ${String(found.uid)}, not to you.`;
  return { id: "state-folder", level: "error", text, fix: `sudo chown -R ${String(own)} ${quoted(folder)}` };
}

async function findWriteProblem(folder: string): Promise<Finding | undefined> {
  const file = join(folder, `.doctor-${String(process.pid)}`);
  try {
    await writeFile(file, "", { flag: "wx" });
    await rm(file);
    return undefined;
  } catch (error) {
    const text = `${folder} cannot be written: ${reason(error)}.`;
    const isMode = error instanceof Error && "code" in error && error.code === "EACCES";
    const elsewhere = "export XDG_STATE_HOME=FOLDER_THAT_CAN_BE_WRITTEN";
    return { id: "state-folder", level: "error", text, fix: isMode ? `chmod u+rwx ${quoted(folder)}` : elsewhere };
  }
}

/** Finds files open to other users, who could change trusted data, or read conversations and tokens. */
async function findOpenToOthers(folder: string, found: Stats): Promise<Finding[]> {
  const files = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile());
  const modes = await Promise.all(
    files.map(async ({ name }) => ({ path: join(folder, name), mode: (await lstat(join(folder, name))).mode })),
  );
  const isOpen = ({ mode }: { mode: number }) => (mode & 0o077) !== 0;
  const all = [{ path: folder, mode: found.mode }, ...modes].filter(isOpen);
  return all.map(({ mode, path }): Finding => {
    const right = path === folder ? 0o700 : 0o600;
    const text = `Other users can ${(mode & 0o022) === 0 ? "read" : "write"} ${path}.`;
    const mend = async () => {
      await chmod(path, right);
      return `The mode of ${path} is ${right.toString(8)} now.`;
    };
    return { id: "state-folder", level: "error", text, fix: `chmod ${right.toString(8)} ${quoted(path)}`, mend };
  });
}

/** Free space, bytes. Below the first limit sessions cannot be stored: an error. Below the second, a warning. */
const [ERROR_BELOW, WARN_BELOW] = [50e6, 500e6];

export async function checkDisk(machine: Machine): Promise<Finding[]> {
  const { cacheFolder, config, environment, stateFolder, store } = machine;
  const own = [stateFolder, cacheFolder, ...(store === undefined ? [] : [dirname(store)])];
  const places = [...own, configFolder(environment), tmpdir()];
  const free = await Promise.all(
    [...new Set(places)].map(async (folder) => [folder, await machine.freeBytes(folder)] as const),
  );
  const [folder, least] = free.reduce((one, other) => (other[1] < one[1] ? other : one));
  const storeBytes = store === undefined ? 0 : await bytesOf([store, `${store}-wal`, `${store}-shm`]);
  const audit = config.auditLog === undefined ? 0 : await bytesOf([config.auditLog]);
  const logs = audit + (await bytesBelow(logFolder(stateFolder)));
  const cache = await bytesBelow(cacheFolder);
  const installed = await bytesBelow(machine.packages.folder);
  const taken = `Store ${megabytes(storeBytes)}, logs ${megabytes(logs)}, cache ${megabytes(cache)} (the Agent SDK and what else npm has installed: ${megabytes(installed)}).`;
  const text = `${megabytes(least)} free in ${folder}. ${taken}`;
  if (least >= WARN_BELOW) return [{ id: "disk", level: "ok", text }];
  const compiled = join(cacheFolder, "compiled");
  const compiledBytes = await bytesBelow(compiled);
  const fix =
    storeBytes >= compiledBytes
      ? "claude-agents-mcp sessions delete --older-than 7d --yes"
      : `rm -r ${quoted(compiled)}`;
  // Omits a fix that would free too little.
  const ours = Math.max(storeBytes, compiledBytes) >= ERROR_BELOW ? { fix } : {};
  const nearly = `The disk is nearly full: ${text}${"fix" in ours ? "" : " Free space there."}`;
  return [{ id: "disk", level: least < ERROR_BELOW ? "error" : "warning", text: nearly, ...ours }];
}

async function bytesOf(files: readonly string[]): Promise<number> {
  const sizes = await Promise.all(
    files.map(async (file) =>
      stat(file)
        .then(({ size }) => size)
        .catch(() => 0),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  return bytesOf(entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)));
}

/** Folders of running demos are younger, ms. */
const MIN_DEMO_AGE_MS = 3_600_000;

/**
 * Finds drafts in the cache whose process has died. Only names folders of demos, because `demo --keep` keeps folders on
 * purpose.
 */
export async function checkTemporary({ cacheFolder }: Machine): Promise<Finding[]> {
  const [demos, drafts] = await Promise.all([oldDemos(tmpdir()), deadDrafts(cacheFolder)]);
  const named = `Folders of demos, kept with --keep or left by a demo that ended early: ${demos.join(", ")}.`;
  const about = demos.length === 0 ? "There are no stale temporary files." : `${named} Delete what you do not need.`;
  if (drafts.length === 0) return [{ id: "temporary-files", level: "ok", text: about }];
  const text = [`Stale temporary files: ${drafts.join(", ")}.`, ...(demos.length === 0 ? [] : [about])].join(" ");
  const mend = async () => {
    for (const path of drafts) await rm(path, { force: true });
    return `${counted(drafts.length, "stale temporary file")} removed.`;
  };
  return [{ id: "temporary-files", level: "warning", text, fix: FIX_COMMAND, mend }];
}

async function oldDemos(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith("claude-agents-mcp-demo-"));
  const found = await Promise.all(
    names.map(async (name) => ({ path: join(folder, name), about: await lstat(join(folder, name)) })),
  );
  const isOwn = ({ uid }: Stats) => process.geteuid === undefined || uid === process.geteuid();
  return found
    .filter(({ about }) => about.isDirectory() && isOwn(about) && Date.now() - about.mtimeMs > MIN_DEMO_AGE_MS)
    .map(({ path }) => path);
}

async function deadDrafts(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => {
      const [, pid] = /^claude-versions\.json\.(\d+)$/.exec(name) ?? [];
      return pid !== undefined && !isAlive(Number(pid));
    })
    .map((name) => join(folder, name));
}

/** Checks trust of the folder in which the command was started. */
export async function checkTrust({ config, cwd, environment }: Machine): Promise<Finding[]> {
  const trust = { trustDirs: config.trustDirs, trustsRecord: true };
  if (await isTrusted(cwd, trust, childEnvironment(environment, { depth: 0 }))) {
    return [{ id: "trust", level: "ok", text: `${cwd} is trusted: its settings, hooks and MCP servers apply.` }];
  }
  const files = await findExecutableSettings(cwd);
  if (files.length === 0) {
    return [{ id: "trust", level: "ok", text: `${cwd} is not trusted, and has no settings that need trust.` }];
  }
  const text = `${cwd} is not trusted: sessions there ignore ${files.join(", ")}. Open it once in Claude Code and accept.`;
  return [{ id: "trust", level: "warning", text, fix: `cd ${quoted(cwd)} && claude` }];
}

function ifMissing(error: unknown): undefined {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
