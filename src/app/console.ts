import { fileURLToPath } from "node:url";
import type { OverHttp, Running } from "./engine.ts";
import { APPROVERS } from "../approvers/approvers.ts";
import { constants } from "../config/constants.ts";
import { confinements } from "../config/confinement.ts";
import { profilesOf } from "../config/profiles.ts";
import type { Config } from "../config/schema.ts";
import { startFolder } from "../config/start-folder.ts";
import { createConsoleApi } from "../console/api.ts";
import { CONSOLE, USER } from "../domain/approvals/answer-source.ts";
import type { Logger } from "../engine/ports.ts";
import type { RequestLinks } from "../console/request-links.ts";
import { mountConsole } from "../console/routes.ts";
import { createPage } from "../console/page.ts";
import type { HttpAppOptions } from "../http/http-app.ts";
import { createRequestEndpoint, type RequestsOptions } from "../http/permission-requests.ts";
import type { LazyStart } from "./lazy-start.ts";
import type { Audit } from "../tools/audit.ts";

/** Assembles the console: API over the engine and page, both served over HTTP. */

export interface ConsoleParts {
  readonly config: Config;
  readonly version: string;
  readonly sessions: LazyStart<Running, OverHttp>;
  readonly allowsBypass: () => boolean;
  readonly publicUrl: () => string;
  /** `undefined` if clients get no links to requests. */
  readonly links: RequestLinks | undefined;
  /** Aborts on `refuseNew`, before the server stops. */
  readonly leaving: AbortSignal;
  readonly audit: Audit | undefined;
  readonly log: Logger;
}

/** Built page, relative to the bundle of this file. */
const PAGE_FOLDER = fileURLToPath(new URL("../console", import.meta.url));

export function createConsole(parts: ConsoleParts): NonNullable<HttpAppOptions["console"]> {
  const { allowsBypass, audit, config, leaving, links, log, publicUrl, sessions, version } = parts;
  const confine = confinements(config);
  const api = createConsoleApi(() => sessions.get(), {
    version,
    approvers: Object.fromEntries(APPROVERS.map(({ name, words }) => [name, words])),
    cwdOf: (principal) => confine(principal)?.allowDirs[0] ?? startFolder(),
    profilesOf: profilesOf(config),
    allowsBypass,
    signsIn: config.auth,
  });
  const requestsBy = (by: RequestsOptions["by"]) =>
    createRequestEndpoint({
      by,
      engine: () => sessions.get().engine,
      audit: audit && ((entry) => audit({ tool: "console", action: "answer", ...entry })),
    });
  return (app, authenticate) =>
    mountConsole(app, {
      api,
      page: createPage(PAGE_FOLDER),
      requests: requestsBy(CONSOLE),
      links,
      linkedRequests: requestsBy(USER),
      authenticate,
      publicUrl,
      maxBodyBytes: constants().maxBodyBytes,
      audit: audit && ((entry) => audit({ tool: "console", ...entry })),
      leaving,
      log,
    });
}
