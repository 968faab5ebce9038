import { randomUUID } from "node:crypto";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { PackReport } from "../engine/ports.ts";
import { packSession, type PackSource } from "./pack-session.ts";

interface Target {
  readonly folder: string;
  /** Rejects if the session went on while it was read. */
  readonly check: () => Promise<void>;
}

/** Packs a session into a file of the folder, which only this user can read. The file of an earlier call is replaced. */
export async function packToFile(source: PackSource, { check, folder }: Target): Promise<PackReport> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${source.record.id}.session`);
  const draft = join(folder, `.${randomUUID()}.tmp`);
  try {
    const notes = await packSession(source, async (packed) => {
      const handle = await open(draft, "wx", 0o600);
      try {
        for await (const bytes of packed.bytes) await handle.writeFile(bytes);
      } finally {
        await handle.close();
      }
      return packed.notes;
    });
    await check();
    await rename(draft, file);
    return { file, bytes: (await stat(file)).size, notes };
  } finally {
    await rm(draft, { force: true });
  }
}
