import { readFileSync } from "node:fs";
import type { StaticFile } from "../../../src/proxy/static-file.ts";

/** Lines with which clients of both eras begin. */

/** Written by the build. */
export const STATIC_FILE = JSON.parse(readFileSync("dist/proxy/answers.json", "utf8")) as StaticFile;

export const PREFIX = "io.modelcontextprotocol/";
export const LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
export const INFO = { name: "client", version: "1" };
export const CLAUDE_CODE = {
  name: "claude-code",
  title: "Claude Code",
  version: "2.1.332",
  websiteUrl: "https://claude.com",
};
export const line = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message });

export function initialize(params: object = {}, id: string | number = 0): string {
  const said = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: INFO, ...params };
  return line({ id, method: "initialize", params: said });
}

export function modern(method: string, meta: object = {}): string {
  const said = { protocolVersion: STATIC_FILE.revision, clientInfo: INFO, clientCapabilities: {}, ...meta };
  const envelope = Object.entries(said).map(([key, value]) => [`${PREFIX}${key}`, value]);
  return line({ id: `${method} 1`, method, params: { _meta: Object.fromEntries(envelope) as object } });
}

const initialized = line({ method: "notifications/initialized" });
/** Ids continue after that of `initialize`: with a shared id, the answer would depend on timing. */
const asked = [...LISTS, "ping"].map((method, at) => line({ id: at + 1, method }));
const level = line({ id: "l", method: "logging/setLevel", params: { level: "warning" } });

export const legacyLines = (params: object) => [initialize(params), initialized, ...asked, level];
export const modernLines = (meta: object) => ["server/discover", ...LISTS].map((method) => modern(method, meta));
