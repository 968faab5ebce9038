import { copyFile, open, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/** Changes to the files of a store while a server uses them, and the words of the error that reports each. */

type Tampering = (file: string) => Promise<void>;

/** Overwrites the content; the file stays the same. */
async function overwrite(path: string, from: number, bytes: number): Promise<void> {
  const file = await open(path, "r+");
  await file.write(Buffer.alloc(bytes, 7), 0, bytes, from);
  await file.close();
}

export const LOG_LOST = "was deleted, cut off or overwritten while it was in use";
export const FILE_LOST = "was moved, replaced or deleted while it was in use";
export const NEWER = "was changed by a newer claude-agents-mcp";

export const TAMPERINGS: readonly [what: string, Tampering, told: string][] = [
  ["the log is deleted", async (file) => rm(`${file}-wal`), LOG_LOST],
  ["the log is emptied", async (file) => truncate(`${file}-wal`), LOG_LOST],
  [
    "the log is cut off",
    async (file) => truncate(`${file}-wal`, Math.floor((await stat(`${file}-wal`)).size / 2)),
    LOG_LOST,
  ],
  ["the beginning of the log is overwritten", async (file) => overwrite(`${file}-wal`, 0, 32), LOG_LOST],
  [
    "all of the log is overwritten",
    async (file) => overwrite(`${file}-wal`, 0, (await stat(`${file}-wal`)).size),
    LOG_LOST,
  ],
  ["the middle of the log is overwritten", async (file) => overwrite(`${file}-wal`, 5000, 100), LOG_LOST],
  [
    "another log is put in its place",
    async (file) => {
      await writeFile(`${file}-other`, "no log ".repeat(1000));
      await rename(`${file}-other`, `${file}-wal`);
    },
    LOG_LOST,
  ],
  ["the index of the log is deleted", async (file) => rm(`${file}-shm`), LOG_LOST],
  ["the file is deleted", async (file) => rm(file), FILE_LOST],
  [
    "another file is put in its place",
    async (file) => {
      await copyFile(file, `${file}-copy`);
      await rename(`${file}-copy`, file);
    },
    FILE_LOST,
  ],
  [
    "a newer server makes it unreadable for this one",
    async (file) => {
      const database = await openDatabase(file);
      database.exec("PRAGMA busy_timeout = 5000; UPDATE meta SET value = '99' WHERE key = 'readable_by'");
      database.close();
    },
    NEWER,
  ],
];
