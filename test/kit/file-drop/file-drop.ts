import { z } from "zod";
import type { Approver } from "../../../src/approvers/approver.ts";
import { ConfigError } from "../../../src/config/error.ts";
import { path } from "../../../src/config/setting.ts";

/** An approver that writes requests to a folder and reads the decisions there. */

const settings = {
  dropFolder: path("none", {
    flag: "drop-folder",
    variable: "CLAUDE_CODE_MCP_DROP_FOLDER",
    meaning: "Where requests are written, and decisions are read.",
  }),
};
const Own = z.object(settings);

export const fileDrop: Approver = {
  name: "file-drop",
  words: { who: "the reader of the folder", by: "in the folder" },
  help: "a folder",
  docs: { is: "the reader of `--drop-folder`", time: "120 s (`file-drop:<ms>`)" },
  time: { usualMs: 120_000 },
  settings,
  check: (config, isNamed) => {
    if (isNamed && Own.parse(config).dropFolder === undefined) {
      throw new ConfigError("--approvals names file-drop: say with --drop-folder where.");
    }
  },
  closed: (config) => {
    const { dropFolder } = Own.parse(config);
    return dropFolder === undefined ? [] : [{ path: dropFolder, why: "the decisions of this server's file-drop" }];
  },
  start: async ({ config, isNamed, log, mask }) => {
    const { dropFolder } = Own.parse(config);
    if (dropFolder === undefined || !isNamed) return undefined;
    const { FileDrop } = await import("./folder-port.ts");
    const port = new FileDrop(dropFolder, mask, log);
    return { port, close: async () => Promise.resolve(port.close()) };
  },
};
