import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";

import { z } from "zod";

const Manifest = z.looseObject({ name: z.string(), version: z.string() });

interface Version {
  readonly manifest: z.infer<typeof Manifest>;
  readonly tarball: Buffer;
  readonly integrity: string;
}

/** Fault of a package; `stalls` sends a third of the tarball until `mend()` is called. */
export type Fault = "stalls" | "other bytes" | 401 | 404 | 407;

/** An npm registry on loopback. Serves the published packages, with the faults that a test sets. */
export class Registry {
  /** Names of packages whose tarball was requested, in order. */
  readonly fetched: string[] = [];
  readonly #packages = new Map<string, Version>();
  readonly #faults = new Map<string, Fault>();
  readonly #mended = new EventEmitter();
  readonly #server = createServer((request, response) => {
    this.#answer(decodeURIComponent(request.url ?? ""), response).catch(() => response.destroy());
  });

  static async start(): Promise<Registry> {
    const registry = new Registry();
    await registry.open(0);
    return registry;
  }

  get url(): string {
    return `http://127.0.0.1:${String(this.port)}/`;
  }

  get port(): number {
    const address = this.#server.address();
    return address !== null && typeof address === "object" ? address.port : 0;
  }

  async open(port: number): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** Closes the port and all connections. */
  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** Publishes the files of a folder unchanged. */
  publish(folder: string): { name: string; integrity: string } {
    const manifest = Manifest.parse(JSON.parse(readFileSync(`${folder}/package.json`, "utf8")));
    const packing = [
      "-C",
      folder,
      "-cf",
      "-",
      "--exclude=./node_modules",
      "--transform=s,^\\.,package,",
      // Compressed as npm does.
      "-I",
      "gzip -9",
    ];
    const tarball = execFileSync("tar", [...packing, "."], { maxBuffer: 1e9 });
    const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
    this.#packages.set(manifest.name, { manifest, tarball, integrity });
    return { name: manifest.name, integrity };
  }

  spoil(name: string, fault: Fault): void {
    this.#faults.set(name, fault);
  }

  /** Clears all faults and lets stalled answers continue. */
  mend(): void {
    this.#faults.clear();
    this.#mended.emit("mended");
  }

  /** Returns the size of the tarball, bytes. */
  bytesOf(name: string): number {
    return this.#packages.get(name)?.tarball.length ?? 0;
  }

  /** Returns the number of requests for the tarball. */
  timesFetched(name: string): number {
    return this.fetched.filter((each) => each === name).length;
  }

  async #answer(path: string, response: ServerResponse): Promise<void> {
    const [, name = "", isTarball] = /^\/(.+?)(\/-\/tarball\.tgz)?$/.exec(path) ?? [];
    const version = this.#packages.get(name);
    const fault = this.#faults.get(name);
    if (!version || typeof fault === "number") return void response.writeHead(version ? Number(fault) : 404).end("{}");
    if (isTarball === undefined) return void response.end(JSON.stringify(this.#packument(version)));
    this.fetched.push(name);
    const { tarball } = version;
    if (fault === "other bytes") return void response.end(Buffer.concat([tarball.subarray(0, -1), Buffer.from([7])]));
    if (fault !== "stalls") return void response.end(tarball);
    const third = Math.ceil(tarball.length / 3);
    response.writeHead(200, { "content-length": tarball.length });
    response.write(tarball.subarray(0, third));
    await once(this.#mended, "mended");
    response.end(tarball.subarray(third));
  }

  #packument({ integrity, manifest }: Version): object {
    const { name, version } = manifest;
    const dist = { tarball: `${this.url}${name}/-/tarball.tgz`, integrity };
    return { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } };
  }
}
