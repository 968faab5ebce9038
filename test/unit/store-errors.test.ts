import { expect, it } from "vitest";

import { StoreError, type FileFault } from "../../src/store/errors.ts";

it.each<[FileFault, boolean, string]>([
  ["busy", false, "is locked by another process. End what holds it"],
  ["corrupt", false, "is damaged. Restore it from a backup"],
  ["driver", false, "there is no SQLite. Use Node 22.13 or later, or run: claude-agents-mcp doctor --fix"],
  ["failed", false, "could not be read or written. Check the disk"],
  ["foreign", false, "is a database of another program. Name another file"],
  ["full", false, "is full: nothing was saved. Free some space"],
  [
    "moved",
    true,
    "was moved, replaced or deleted while it was in use: what was stored last may be missing. End all servers",
  ],
  ["network", false, "is on a network file system, where it cannot be kept safely. Name a file on a local disk"],
  ["newer", true, "was changed by a newer claude-agents-mcp"],
  ["readonly", false, "cannot be written. Make the file and its folder writable"],
])("an error with the fault %s names the file of the store, the cause and a remedy", (fault, isLoss, says) => {
  const error = new StoreError(fault, "/s/store.db", new Error("EIO"));
  expect(error).toMatchObject({ code: "INTERNAL", fault, isLoss });
  for (const part of ["/s/store.db", says, "(EIO)"]) expect(error.message).toContain(part);
  expect(new StoreError(fault, "/s", "no error").message).not.toContain("no error");
});
