import type { Library } from "./define.ts";
import { errors } from "./errors.ts";
import { options } from "./options.ts";
import { permissions } from "./permissions.ts";
import { quickstart } from "./quickstart.ts";
import { session, sessionEvents } from "./session.ts";

/** All that can be read from a server with the toolset `agent`. */
export const LIBRARY: Library = {
  pages: [quickstart, permissions, errors, options],
  documents: [session, sessionEvents],
};
