import { z } from "zod";
import { FencedError, type Lease, type StoredTranscripts, type TranscriptManifest } from "../../engine/ports.ts";
import type { Database } from "./connect/database.ts";

/** Copies of conversations, in parts as they were written. */

const sql = {
  write: "SELECT write_transcript($1, $2, $3, $4, $5, $6) AS outcome",
  seal: "SELECT seal_transcript($1, $2, $3, $4, $5, $6) AS outcome",
  manifest: "SELECT manifest FROM transcript_manifests WHERE session_id = $1",
  // Cuts the bytes out of the parts that have some of them.
  read: `SELECT substring(data FROM (greatest($3 - start, 0) + 1)::integer
      FOR (least($3 + $4, start + octet_length(data)) - greatest($3, start))::integer) AS data
    FROM transcript_parts WHERE session_id = $1 AND path = $2 AND start < $3 + $4 AND start + octet_length(data) > $3
    ORDER BY start`,
} as const;

const Outcome = z.object({ outcome: z.string() });
const Part = z.object({ data: z.instanceof(Uint8Array) });

const Manifest = z.object({
  transcriptId: z.string(),
  eventId: z.int(),
  files: z.array(z.object({ path: z.string(), size: z.int(), digest: z.string() })),
});
const ManifestRow = z.object({ manifest: z.string() });

export function databaseTranscripts(use: <T>(work: (db: Database) => Promise<T>) => Promise<T>): StoredTranscripts {
  const change = async (
    lease: Lease,
    statement: string,
    values: Parameters<Database["get"]>[2] = [],
  ): Promise<void> => {
    const { epoch, nodeId, sessionId } = lease;
    const found = await use(async (db) => db.get(statement, Outcome, [sessionId, nodeId, epoch, ...values]));
    if (found?.outcome === "fenced") throw new FencedError(`session ${sessionId} is no longer owned by ${nodeId}`);
    if (found?.outcome !== "stored") throw new Error(`session ${sessionId}: ${found?.outcome ?? "nothing"} is stored`);
  };
  return {
    write: async (lease, path, offset, bytes) => change(lease, sql.write, [path, offset, bytes]),
    seal: async (lease, manifest) => {
      const { files } = manifest;
      const columns = [files.map(({ path }) => path), files.map(({ size }) => size)];
      await change(lease, sql.seal, [JSON.stringify(manifest), ...columns]);
    },
    manifest: async (sessionId): Promise<TranscriptManifest | undefined> => {
      const row = await use(async (db) => db.get(sql.manifest, ManifestRow, [sessionId]));
      return row && Manifest.parse(JSON.parse(row.manifest));
    },
    read: async (sessionId, path, offset, length) => {
      const parts = await use(async (db) => db.all(sql.read, Part, [sessionId, path, offset, length]));
      return Buffer.concat(parts.map(({ data }) => data));
    },
  };
}
