import { readdir, readFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

/** Files of the built page, read by `readFiles` on the first request and kept in memory, plain and gzipped. */

/** Allows resources of this server only. With `trusted-types`, text written by agents cannot become HTML or script. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** Headers of every answer below `/console`. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

interface PageFile {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly packed: Buffer<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
  readonly cached: string;
}

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

export type Page = (request: Request, path: string) => Promise<Response | undefined>;

/** Returns a function that takes a path ("" for `index.html`) and resolves to `undefined` for an unknown path. */
export function createPage(folder: string): Page {
  let files: Promise<ReadonlyMap<string, PageFile>> | undefined;
  return async ({ headers }, path) => {
    // Retries a failed `readFiles` with the next request.
    files ??= readFiles(folder).catch((error: unknown) => {
      files = undefined;
      throw error;
    });
    const file = (await files).get(path === "" ? "index.html" : path);
    if (!file) return undefined;
    const { bytes, cached, etag, packed, type } = file;
    const sent = { ...SAFE_HEADERS, "cache-control": cached, etag, vary: "accept-encoding" };
    if (headers.get("if-none-match") === etag) return new Response(null, { status: 304, headers: sent });
    const takesPacked = /\bgzip\b/.test(headers.get("accept-encoding") ?? "");
    const body = takesPacked ? packed : bytes;
    const encoding: Record<string, string> = takesPacked ? { "content-encoding": "gzip" } : {};
    return new Response(body, { headers: { ...sent, ...encoding, "content-type": type } });
  };
}

async function readFiles(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = found.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = paths.map(async (path) => {
    const name = path.slice(folder.length + 1).replaceAll("\\", "/");
    return [name, preparedFile(name, await readFile(path))] as const;
  });
  return new Map(await Promise.all(files));
}

function preparedFile(name: string, bytes: Buffer<ArrayBuffer>): PageFile {
  const type = TYPES[name.replace(/^.*\./, "")] ?? "application/octet-stream";
  const etag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  // File names below `assets/` change with the content.
  const cached = name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache";
  return { bytes, packed: gzipSync(bytes), type, etag, cached };
}
