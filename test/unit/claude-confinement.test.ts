import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { checkAllPlaces } from "../../src/claude/preflight/session-paths.ts";
import { EnvironmentRecords } from "../../src/claude/environment-records.ts";
import { childEnvironment } from "../../src/claude/child-environment.ts";
import { planLaunch } from "../../src/claude/launch-plan.ts";
import { splitForSpare } from "../../src/claude/spares/spec.ts";
import { Guards } from "../../src/claude/supervise/guards.ts";
import { Spawner } from "../../src/claude/supervise/spawn.ts";
import type { ProcessHandle } from "../../src/claude/supervise/process-handle.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { resolveFolders } from "../../src/engine/session/build-command.ts";
import { ESCAPES, plantImage, type AttackFolders } from "../kit/attacks/escapes.ts";
import { dependenciesFor, placementOf, runtimeFor } from "../kit/sessions/confined-runtime.ts";

let root = "";
let place: AttackFolders;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "confined-")));
  place = { allowed: join(root, "allowed"), outside: join(root, "outside") };
  for (const folder of [place.allowed, place.outside]) mkdirSync(folder);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const runtime = () => runtimeFor({ allowDirs: [place.allowed] });
const outside = (field: string) => ({
  code: "INVALID_ARGUMENT",
  message: expect.stringContaining(`${field}: `) as string,
});
const check = async (options: Partial<SessionOptions>) =>
  runtime().plan(placementOf({ cwd: place.allowed, ...options }));
/** Returns the checked paths of `options`, as passed to Claude Code. */
const checkedPaths = async (options: Partial<SessionOptions>, allowDirs = [place.allowed]) =>
  checkAllPlaces({ cwd: place.allowed, ...options }, [{ allowDirs }], []);

describe.each(ESCAPES)("a path that leaves the allowed folder by $how", ({ folder }) => {
  it("a path outside is refused as `cwd`, `additionalDirectories`, `debugFile` and attachment", async () => {
    const way = folder(place);
    await expect(check({ cwd: way })).rejects.toMatchObject(outside("cwd"));
    const additionalDirectories = [place.allowed, way];
    await expect(check({ additionalDirectories })).rejects.toMatchObject(outside("additionalDirectories[1]"));
    await expect(check({ debugFile: `${way}/debug.log` })).rejects.toMatchObject(outside("debugFile"));
    const attach = async (path: string) => runtime().attach(placementOf({ cwd: place.allowed }), [{ path }]);
    await expect(attach(`${way}/planted.png`)).rejects.toMatchObject(outside("attachments[0].path"));
    await expect(runtime().workTree(placementOf({ cwd: way }))).rejects.toMatchObject(outside("cwd"));
  });

  it("an approval cannot add a directory outside to a session", async () => {
    const approve = async (directories: string[]) =>
      resolveFolders(runtime(), placementOf({ cwd: place.allowed }), {
        behavior: "allow",
        updatedPermissions: [{ type: "addDirectories", directories, destination: "session" }],
      });
    const way = folder(place);
    await expect(approve([place.allowed, way])).rejects.toMatchObject(outside("additionalDirectories[1]"));
    symlinkSync(place.allowed, join(place.allowed, "self"), "junction");
    const inside = await approve([join(place.allowed, "self")]);
    expect(inside).toMatchObject({ updatedPermissions: [{ directories: [place.allowed] }] });
  });

  it("a path outside is refused at each start of a process, whatever earlier checks found", async () => {
    const start = { ...placementOf({ cwd: folder(place) }), admitted: Promise.resolve() };
    const config = dependenciesFor({ allowDirs: [place.allowed] });
    await expect(planLaunch(start as never, config, {} as never)).rejects.toMatchObject(outside("cwd"));
  });

  it("a session from disk is refused if its folder is outside, and the refusal does not name the folder", async () => {
    const cwd = realpathSync(folder(place));
    const configDir = join(root, "config");
    const id = "00000000-0000-4000-8000-000000000001";
    mkdirSync(join(configDir, "projects", "p"), { recursive: true });
    const line = JSON.stringify({ type: "user", cwd, message: { content: "hi" } });
    writeFileSync(join(configDir, "projects", "p", `${id}.jsonl`), line);
    const found = runtimeFor({ allowDirs: [place.allowed], configDir }).find(id, placementOf({}));
    await expect(found).rejects.toMatchObject(outside("sessionId"));
    await expect(found).rejects.not.toMatchObject({ message: expect.stringContaining(place.outside) as string });
    await expect(runtimeFor({ configDir }).find(id, placementOf({}))).resolves.toEqual({ cwd });
    await expect(runtimeFor({}).find(id, placementOf({}))).resolves.toBeUndefined();
  });
});

it("`..` after a link is resolved from where the link leads", async () => {
  mkdirSync(join(place.outside, "deep"));
  symlinkSync(join(place.outside, "deep"), join(place.allowed, "in"));
  const way = `${place.allowed}/in/..`;
  await expect(check({ cwd: way })).rejects.toMatchObject(outside("cwd"));
  // Claude Code receives real paths of `additionalDirectories`.
  const additionalDirectories = [place.allowed];
  await expect(checkedPaths({ additionalDirectories: [way] })).resolves.toMatchObject({ additionalDirectories });
});

describe("a path inside the allowed folder", () => {
  it("a path inside is passed on as its real path, so that a link cannot be redirected after the check", async () => {
    const real = join(place.allowed, "real");
    mkdirSync(join(real, "more"), { recursive: true });
    const way = join(place.allowed, "way");
    symlinkSync(real, way, "junction");
    const options = { cwd: way, additionalDirectories: ["more"], debugFile: "debug.log" };
    const checked = await checkedPaths(options);
    unlinkSync(way);
    symlinkSync(place.outside, way, "junction");
    expect(checked).toEqual({
      cwd: real,
      additionalDirectories: [join(real, "more")],
      debugFile: join(real, "debug.log"),
    });
    await expect(check(options)).rejects.toMatchObject(outside("cwd"));
  });

  it("paths stay as given if no allowed folders are set", async () => {
    const way = join(root, "way");
    symlinkSync(place.outside, way, "junction");
    const options = { cwd: way, additionalDirectories: ["."] };
    await expect(checkedPaths(options, [])).resolves.toEqual(options);
  });

  it("a file inside is read as an attachment; a link that leads outside is refused, even a dangling link", async () => {
    const attach = async (path: string) => runtime().attach(placementOf({ cwd: place.allowed }), [{ path }]);
    plantImage(place.allowed);
    await expect(attach("planted.png")).resolves.toMatchObject([{ mediaType: "image/png" }]);
    symlinkSync(plantImage(place.outside), join(place.allowed, "link.png"));
    await expect(attach("link.png")).rejects.toMatchObject(outside("attachments[0].path"));
    const nowhere = join(place.allowed, "nowhere.log");
    symlinkSync(join(place.outside, "later.log"), nowhere);
    await expect(check({ debugFile: nowhere })).rejects.toMatchObject(outside("debugFile"));
  });

  it("a missing path outside is refused in the same words as an existing one, so that callers cannot probe paths", async () => {
    const [there, gone] = [place.outside, join(root, "gone")];
    const words = async (cwd: string) => check({ cwd }).catch((error: unknown) => String(error).replace(cwd, "X"));
    expect(await words(gone)).toBe(await words(there));
    const path = async (file: string) =>
      runtime()
        .attach(placementOf({ cwd: place.allowed }), [{ path: file }])
        .catch((error: unknown) => String(error).replace(file, "X"));
    expect(await path(join(place.outside, "gone.png"))).toBe(await path(plantImage(place.outside)));
  });

  it.skipIf(process.platform === "win32")(
    "no byte from outside is read while folders and links are swapped",
    async () => {
      const secret = join(place.outside, "planted.png");
      plantImage(place.outside);
      // Contents that differ from the image outside, so that a read shows the source.
      const swapped = join(place.allowed, "dir");
      mkdirSync(swapped);
      const own = Buffer.concat([Buffer.from("\u0089PNG\r\n\u001A\n", "latin1"), Buffer.from("mine")]);
      writeFileSync(join(swapped, "planted.png"), own);
      const aside = join(place.allowed, "aside");
      const flip = setInterval(() => {
        renameSync(swapped, aside);
        symlinkSync(place.outside, swapped);
        setImmediate(() => {
          unlinkSync(swapped);
          renameSync(aside, swapped);
        });
      }, 0);
      const results: string[] = [];
      try {
        for (let round = 0; round < 300; round += 1) {
          const read = runtime().attach(placementOf({ cwd: place.allowed }), [{ path: join(swapped, "planted.png") }]);
          results.push(
            await read.then(
              ([image]) => image!.data,
              () => "refused",
            ),
          );
        }
      } finally {
        clearInterval(flip);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(existsSync(secret)).toBe(true);
      expect([...new Set(results)].filter((each) => each !== "refused")).toEqual([own.toString("base64")]);
    },
  );
});

describe("a principal that the server does not know", () => {
  it("an unknown principal cannot run, read or look up anything", async () => {
    const free = runtimeFor({});
    const refused = { code: "PERMISSION_DENIED", message: expect.stringContaining("bob") as string };
    const options = { cwd: root };
    const id = "00000000-0000-4000-8000-000000000001";
    const session = placementOf(options, "bob");
    await expect(free.plan(session)).rejects.toMatchObject(refused);
    await expect(free.checkFolders(session, [root])).rejects.toMatchObject(refused);
    await expect(free.workTree(session)).rejects.toMatchObject(refused);
    await expect(free.find(id, placementOf({}, "bob"))).rejects.toMatchObject(refused);
    await expect(free.plan({ ...session, goesOnWith: id })).rejects.toMatchObject(refused);
    const signals: object[] = [];
    const ended = new Promise<void>((resolve) => {
      free.start({
        sessionId: id,
        transcriptId: id,
        ...session,
        first: true,
        hasSpoken: false,
        processTag: `${id}:1`,
        epoch: 1,
        admitted: Promise.resolve(),
        watchesCost: false,
        hasFreeSlot: async () => Promise.resolve(false),
        onPartial: () => undefined,
        onSignal: (signal) => {
          signals.push(signal);
          if (signal.type === "exited") resolve();
        },
      });
    });
    await ended;
    expect(signals).toMatchObject([{ type: "exited", error: expect.stringContaining("has no user bob") as string }]);
  });
});

describe("the configuration folder of a principal", () => {
  it("the configuration folder is passed in `CLAUDE_CONFIG_DIR` and determines the identity of a session", async () => {
    const own = { CLAUDE_CONFIG_DIR: "/server", PATH: "/bin" };
    const child = { depth: 0, configDir: "/ann" };
    expect(childEnvironment(own, child)).toMatchObject({ CLAUDE_CONFIG_DIR: "/ann", PATH: "/bin" });
    const { configDir } = child;
    const start = placementOf({ cwd: root });
    const ann = await runtimeFor({ configDir }, { environments: new EnvironmentRecords(Buffer.alloc(32), own) }).plan(
      start,
    );
    expect(ann.identity).toMatchObject({ configFolder: "/ann" });
    const others = await runtimeFor({}, { environments: new EnvironmentRecords(Buffer.alloc(32), own) }).plan(start);
    expect(others.identity).toMatchObject({ configFolder: "/server" });
  });

  it("spares are separated by configuration folder, principal and wrapper", async () => {
    const options = { cwd: root, env: { CLAUDE_CONFIG_DIR: join(root, "a") } };
    const keyOf = async (principal: string, wrapper: string[], over = {}) =>
      (await splitForSpare({ principal, wrapper, record: {} }, { ...options, ...over }))?.spec.key;
    const key = await keyOf("ann", []);
    expect(await keyOf("ann", [])).toBe(key);
    const env = { CLAUDE_CONFIG_DIR: join(root, "b") };
    const others = [await keyOf("bob", []), await keyOf("ann", ["nice"]), await keyOf("ann", [], { env })];
    expect(new Set([key, ...others]).size).toBe(4);
  });
});

describe.skipIf(process.platform === "win32")("a wrapper in front of the command", () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });

  it.each([false, true])(
    "a wrapper receives the command as its arguments, and `kill` ends the whole tree (reaper: %s)",
    async (forceReaper) => {
      const wrapper = ["sh", "-c", 'echo "wrapped $*"; "$@"; true', "wrapper"];
      const request = { command: "sh", args: ["-c", 'echo "$MARK $$"; sleep 300 & wait', "--own"], cwd: root };
      const { signal } = new AbortController();
      let spawned: ProcessHandle | undefined;
      const env = { PATH: process.env["PATH"], MARK: "arrived" };
      // `store` differs between the runs, because the kill of the first run may still sweep.
      const server = { store: `reaper: ${String(forceReaper)}`, pid: process.pid, startedAt: "1" };
      const guards = await Guards.find({ forceReaper });
      const child = new Spawner({ guards, server }).spawn({ ...request, env, signal }, (each) => (spawned = each), {
        name: "one",
        wrapper,
      });
      let text = "";
      child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
      await vi.waitFor(() => expect(text).toMatch(/arrived \d+/), { timeout: 5_000 });
      expect(text).toContain("wrapped sh -c");
      expect(text).toContain("--own");
      const inner = Number(/arrived (\d+)/.exec(text)?.[1]);
      expect(inner).not.toBe(spawned?.pid);
      expect(await startTime(inner)).toBeDefined();
      spawned?.kill();
      await spawned?.gone;
      expect(await startTime(inner)).toBeUndefined();
    },
  );

  it("a wrapper also runs in front of git", async () => {
    const git = spawn("git", ["init", "-q", place.allowed]);
    children.push(git);
    await once(git, "exit");
    const trace = join(root, "trace");
    const spawnWrapper = ["sh", "-c", `echo "$1" >> ${trace}; exec "$@"`, "wrapper"];
    await runtimeFor(
      { spawnWrapper },
      { environments: new EnvironmentRecords(Buffer.alloc(32), { PATH: process.env["PATH"] }) },
    ).workTree(placementOf({ cwd: place.allowed }));
    expect(existsSync(trace)).toBe(true);
  });
});
