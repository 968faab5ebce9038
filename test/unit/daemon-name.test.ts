import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { daemonEnvironment } from "../../src/daemon/daemon-environment.ts";
import { daemonName } from "../../src/daemon/name.ts";

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "ccm-name-"))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function folder(name: string): string {
  const path = join(root, name);
  mkdirSync(path);
  return path;
}

describe("the name of a daemon", () => {
  it("the name follows from the state folder and the store, however their paths are spelled", async () => {
    const state = folder("state");
    const name = await daemonName({ stateFolder: state });
    expect(name).toMatch(/^[0-9a-f]{24}$/);
    symlinkSync(state, join(root, "link"));
    for (const spelling of [join(root, "link"), join(root, "x", "..", "state")]) {
      expect(await daemonName({ stateFolder: spelling })).toBe(name);
      expect(await daemonName({ stateFolder: state, store: join(spelling, "store.db") })).toBe(name);
    }
  });

  it("the name differs by store, state folder, `local.key` and the arguments of a server over HTTP", async () => {
    const state = folder("state");
    const names = [
      await daemonName({ stateFolder: state }),
      await daemonName({ stateFolder: state, store: join(root, "other.db") }),
      await daemonName({ stateFolder: folder("other"), store: join(state, "store.db") }),
      await daemonName({ stateFolder: state, argv: ["--http"] }),
      await daemonName({ stateFolder: state, store: "postgres://h/d" }),
    ];
    rmSync(join(state, "local.key"));
    names.push(await daemonName({ stateFolder: state }));
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("the environment that a daemon keeps", () => {
  const own = {
    HOME: "/home/ann",
    PATH: "/bin",
    LC_ALL: "C",
    XDG_STATE_HOME: "/s",
    SSL_CERT_FILE: "/c.pem",
    TZ: "UTC",
  };
  const others = {
    ANTHROPIC_API_KEY: "sk-1",
    SSH_AUTH_SOCK: "/tmp/agent",
    CLAUDE_CONFIG_DIR: "/c",
    VSCODE_PID: "7",
    TERM: "xterm",
    NODE_OPTIONS: "--inspect",
    HTTPS_PROXY: "http://u:p@127.0.0.1",
    CLAUDE_CODE_MCP_ALLOW_BYPASS: "1",
    XDG_SESSION_ID: "3",
  };

  it("a daemon keeps the variables that it needs itself, and none in which its clients may differ", () => {
    expect(daemonEnvironment({ ...own, ...others }, "linux")).toEqual(own);
    expect(daemonEnvironment(daemonEnvironment({ ...own, ...others }, "linux"), "linux")).toEqual(own);
  });

  it("on Windows, names of variables match in any case, and those that programs need there are kept", () => {
    const windows = { Path: "C:\\x", SystemRoot: "C:\\Windows", "ProgramFiles(x86)": "C:\\p", userprofile: "C:\\ann" };
    expect(daemonEnvironment({ ...windows, ...others }, "win32")).toEqual(windows);
    expect(daemonEnvironment(windows, "linux")).toEqual({});
  });
});
