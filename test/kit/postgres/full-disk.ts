import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Cluster } from "../../../scripts/postgres-cluster.mjs";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import { Database } from "./database.ts";
import { PostgresStore } from "./store.ts";
import { claimLease, notice, session, TTL, write } from "../store/vocabulary.ts";

/** Fills the disk of a database: a file system of its own, which only root may mount. */

const LARGE = "x".repeat(100_000);
/** Small pieces of the write-ahead log, so that the disk need not be large. */
const SETTINGS = ["wal_recycle = off", "max_wal_size = '64MB'", "min_wal_size = '32MB'"];

function mounted(): string {
  const disk = mkdtempSync(join(tmpdir(), "ccm-full-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=256m,mode=1777", "tmpfs", disk]);
  return disk;
}

/** Appends until the store refuses. Returns the number of stored events. */
async function fillUp(node: SessionBackend, append: (text: string) => Promise<void>, disk: string): Promise<string> {
  for (let stored = 0; stored < 10_000; stored += 1) {
    const { bavail, bsize } = statfsSync(disk);
    if (bavail * bsize > 8e6) writeFileSync(join(disk, "ballast"), Buffer.alloc(bavail * bsize - 4e6), { flag: "a" });
    const refused = await append(LARGE).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    if (refused !== undefined) return refused;
  }
  throw new Error(`node ${node.nodeId}: the disk was never full`);
}

export function fullDiskTest(): void {
  it(
    "a full disk fails appends with the reason, loses none that was acknowledged, and appends go on once there is space",
    { timeout: 300_000 },
    async () => {
      const disk = mounted();
      const cluster = await Cluster.start(SETTINGS, disk);
      const database = await Database.create(cluster);
      const store = new PostgresStore(database);
      const node = store.connect("n");
      await node.leases.heartbeat(20 * TTL);
      const { id } = (await node.rows.create(session())).record;
      const lease = await claimLease(node, id);
      let acknowledged = 0;
      const append = async (text: string) => {
        await write(node, lease, [notice(text)]);
        acknowledged += 1;
      };
      expect(await fillUp(node, append, disk)).toMatch(/The disk of the database .* is full|does not answer/);
      rmSync(join(disk, "ballast"));
      // A full disk of the write-ahead log ends PostgreSQL, which a service manager starts again.
      await cluster.stop().catch(() => undefined);
      await cluster.start();
      await sleep(100);
      const before = (await node.log.read(id, 1, 100_000)).length;
      expect(before).toBeGreaterThanOrEqual(acknowledged);
      await append("after");
      expect((await node.log.read(id, 1, 100_000)).at(-1)).toMatchObject({ data: { message: "after" } });
      await store.close();
      await database.drop();
      await cluster.remove();
      execFileSync("umount", [disk]);
      rmSync(disk, { recursive: true });
    },
  );
}
