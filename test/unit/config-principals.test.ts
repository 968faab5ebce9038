import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { checkTokens } from "../../src/config/principals.ts";
import { confinements } from "../../src/config/confinement.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";

/** Settings that make a server refuse to start: principals without folders, and guessable tokens. */

const FILE = resolve("/settings/server.json");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const tokenSha256 = sha256("ccm_nobody-would-try-this");

function load(file: object, argv: string[] = ["--http", "127.0.0.1:0"]): Config {
  return loadConfig({ argv, env: { CLAUDE_CODE_MCP_CONFIG: FILE }, readFile: () => JSON.stringify(file) });
}

const ISSUER = { oauth: { issuer: "https://login.example.com" } };
const ADA = { principals: { ada: { tokenSha256 } } };
const ada = (allowDirs: unknown) => ({ principals: { ada: { tokenSha256, allowDirs } } });

describe("over HTTP, sessions of principals other than the operator", () => {
  it.each<[string, object, string]>([
    ["a named principal", ADA, "principals: sessions of ada could start in any folder of this machine."],
    ["one of two", { principals: { ...ada(["/a"]).principals, bob: {} } }, "principals: sessions of bob could start"],
    ["subjects of an authorization server", ISSUER, `"oauth" in ${FILE}: sessions of all its subjects could start`],
    [
      "subjects beside a principal with folders",
      { ...ISSUER, ...ada("any") },
      `"oauth" in ${FILE}: sessions of all its`,
    ],
    ["a principal, with an empty list for all", { ...ADA, allowDirs: [] }, "principals: sessions of ada could start"],
  ])("principals over HTTP need folders or an explicit `any`: %s is refused without them", (_, file, message) => {
    expect(() => load(file)).toThrow(message);
    expect(() => load(file)).toThrow('"allowDirs": "any"');
  });

  it.each<[string, object, string[] | undefined]>([
    ["folders of a principal", ada(["/a"]), ["/a"]],
    ["any folder for a principal", ada("any"), []],
    ["folders for all", { ...ADA, allowDirs: [resolve("/b")] }, [resolve("/b")]],
    ["any folder for all", { ...ADA, allowDirs: "any" }, []],
    ["any folder for a principal among folders for all", { ...ada("any"), allowDirs: [resolve("/b")] }, []],
    ["folders for subjects", { ...ISSUER, allowDirs: [resolve("/b")] }, [resolve("/b")]],
    ["any folder for subjects", { ...ISSUER, allowDirs: "any" }, []],
  ])("sessions over HTTP may use the configured folders: %s", (_, file, folders) => {
    expect(confinements(load(file))("ada")?.allowDirs).toEqual(folders);
  });

  it("`--allow-dir any` allows a folder named `any`", () => {
    expect(load({}, ["--allow-dir", "any"]).allowDirs).toEqual([resolve("any")]);
  });

  it.each<[string, object, string[]]>([
    ["on stdio", ADA, []],
    ["without tokens, when every client is the operator", ADA, ["--http", "127.0.0.1:0", "--no-auth"]],
    ["with the operator alone", {}, ["--http", "127.0.0.1:0"]],
  ])("principals need no folders %s", (_, file, argv) => {
    expect(() => load(file, argv)).not.toThrow();
  });
});

describe("a guessable token", () => {
  it.each(["test", "secret", "changeme", "PASSWORD", "Admin", "", "123456", "test\n", "ccm_..."])(
    "a guessable token is refused by its digest: %j",
    (word) => {
      const principals = { ada: { tokenSha256: [tokenSha256, sha256(word)], allowDirs: "any" } };
      expect(() => load({ principals })).toThrow(
        /^principals: tokenSha256 of ada is the digest of ".*", which is easy to guess/,
      );
    },
  );

  it("no document or example has the digest of a guessable token", () => {
    const files = ["docs", "examples"].flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
    );
    const texts = [
      ...files.filter((name) => /\.(?:json|md|mjs|sh|toml|ts|ya?ml)$/.test(name)),
      "README.md",
      "SECURITY.md",
    ];
    for (const file of texts) {
      for (const [digest] of readFileSync(file, "utf8").matchAll(/\b[\da-f]{64}\b/g)) {
        const principals = { ada: { tokenSha256: digest, scopes: [], attended: false, operatorOptions: false } };
        expect(() => checkTokens(principals), `${file}: ${digest}`).not.toThrow();
      }
    }
  });
});
