import { requireSandbox } from "../preflight.ts";
import { ownCommands } from "../serve.ts";
import type { App } from "../../app/app.ts";
import { storeLocation } from "../../app/store.ts";
import { withClientSources, requireQueryFolder, readClientTerms } from "../../app/terms.ts";
import { ConfigError } from "../../config/error.ts";
import type { Config } from "../../config/schema.ts";
import type { ServerSettings } from "../../config/server-settings.ts";
import { storeTraits } from "../../config/store.ts";
import { buildId, readPackage } from "../../config/version.ts";
import type { ListenerOptions } from "../../daemon/listener.ts";
import type { ClientHello } from "../../daemon/wire.ts";

/** Decides about clients of a daemon: served or refused, and under which terms. */

interface Names {
  /** Name of the command. */
  readonly product: string;
  /** Name of a named daemon, otherwise `undefined`. */
  readonly name: string | undefined;
}

/** Returns `accept` for the listener: serves each client under its own terms. */
export function createAcceptor(app: App, server: ServerSettings, { name, product }: Names): ListenerOptions["accept"] {
  // Values of PATH with a sandbox. Found once, a sandbox is not looked for again.
  const withSandbox = new Set<string | undefined>();
  return async (hello) => {
    const { clientPid, commandLine, cwd, purpose } = hello;
    const commands = commandLine.length > 0 ? ownCommands(product, commandLine) : [];
    const start = readClientTerms(hello, { server, ownCommands: commands });
    if (purpose === "operations" && name !== undefined) {
      refuseForeign(name, hello, { client: start.config, own: server.config });
    }
    try {
      if (!withSandbox.has(start.environment["PATH"])) await requireSandbox(start.config, start.environment);
      await requireQueryFolder(start.config);
    } catch (error) {
      throw withClientSources(error, hello, server);
    }
    if (start.config.sandbox === "required") withSandbox.add(start.environment["PATH"]);
    app.log.debug("a client has connected", { cwd, purpose, ...(clientPid !== undefined && { clientPid }) });
    return (client) => {
      if (purpose === "operations") app.serveOperations({ ...client, start });
      else app.serveClient({ ...client, start });
    };
  };
}

/**
 * Throws ConfigError for a console with another store or build: consoles read the store themselves, and their protocol belongs
 * to the build. Automatic daemons need no check, because store and build are in their name.
 */
function refuseForeign(name: string, { build, environment }: ClientHello, { client, own }: Configs): void {
  const stores = [
    storeLocation({ config: client, environment }),
    storeLocation({ config: own, environment: process.env }),
  ];
  const [theirs = "", ours = ""] = stores.map((location) => storeTraits(location).identity);
  if (theirs !== ours) {
    const problem = `this daemon keeps its sessions in ${ours}, and this console reads ${theirs}`;
    throw new ConfigError(`--daemon ${name}: ${problem}. Start the console with --store ${ours}.`);
  }
  if (build === buildId()) return;
  const problem = `this daemon is of another build (version ${readPackage().version})`;
  throw new ConfigError(
    `--daemon ${name}: ${problem}. Use the console of that build, or start the daemon again with yours.`,
  );
}

interface Configs {
  readonly client: Config;
  readonly own: Config;
}
