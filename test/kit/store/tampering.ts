import { copyFile, rename, rm, writeFile } from "node:fs/promises";
import { openDatabase } from "../../../src/store/sqlite/connect/driver.ts";

/** Changes to the files of a store in use, and the text of the error for each. */

type Tampering = (file: string) => Promise<void>;

export const LOST = "was moved, replaced or deleted while it was in use";
export const NEWER = "was changed by a newer claude-agents-mcp";

export const TAMPERINGS: readonly [what: string, Tampering, told: string][] = [
  ["the log is deleted", async (file) => rm(`${file}-wal`), LOST],
  [
    "another log is put in its place",
    async (file) => {
      await writeFile(`${file}-other`, "no log ".repeat(1000));
      await rename(`${file}-other`, `${file}-wal`);
    },
    LOST,
  ],
  ["the index of the log is deleted", async (file) => rm(`${file}-shm`), LOST],
  ["the file is deleted", async (file) => rm(file), LOST],
  [
    "another file is put in its place",
    async (file) => {
      await copyFile(file, `${file}-copy`);
      await rename(`${file}-copy`, file);
    },
    LOST,
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
