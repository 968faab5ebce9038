import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { keyFor } from "../../src/security/key-file.ts";

let root: string;
beforeEach(() => void (root = mkdtempSync(join(tmpdir(), "ccm-key-"))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("the key of a state folder", () => {
  it("a key is made once by concurrent callers, is private to the user, and differs by purpose", async () => {
    const folder = join(root, "new");
    const keys = await Promise.all([1, 2, 3].map(async () => keyFor("request-state", folder)));
    expect(new Set(keys.map((key) => key.toString("hex"))).size).toBe(1);
    expect((await keyFor("socket-name", folder)).equals(keys[0]!)).toBe(false);
    expect(readdirSync(folder)).toEqual(["local.key"]);
    expect(statSync(join(folder, "local.key")).mode & 0o777).toBe(0o600);
  });

  it("a key is refused if its file is readable by others or damaged", async () => {
    mkdirSync(join(root, "open"));
    writeFileSync(join(root, "open", "local.key"), "x".repeat(32), { mode: 0o644 });
    await expect(keyFor("request-state", join(root, "open"))).rejects.toThrow("readable by other users");
    mkdirSync(join(root, "short"));
    writeFileSync(join(root, "short", "local.key"), "x", { mode: 0o600 });
    await expect(keyFor("request-state", join(root, "short"))).rejects.toThrow("damaged");
  });
});
