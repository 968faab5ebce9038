import { isRunning } from "../../app/store.ts";
import { ConfigError } from "../../config/error.ts";
import { daemonsOnFile } from "../../daemon/running-file.ts";
import type { Listener } from "../../daemon/listener.ts";
import { NameTakenError, listSockets, type BindOptions } from "../../daemon/socket.ts";
import { acquireStartMutex } from "../../daemon/start-mutex.ts";
import { describeDaemons } from "../../daemon/status.ts";

/** Refuses `daemon run` if a daemon of that name already runs. */

/** Time limit for another daemon to become ready, ms. */
const CLAIM_MS = 30_000;

/**
 * Makes sure that no automatic daemon runs; otherwise throws ConfigError. With `waits`, also acquires the start mutex and
 * resolves to the function for its release: shims and clients may start several daemons at once, and only one may take over
 * sessions.
 */
export async function claimStart(
  folders: readonly string[],
  name: string,
  waits: boolean,
): Promise<(() => void) | undefined> {
  const releaseMutex = waits ? await acquireStartMutex(folders, name, CLAIM_MS) : undefined;
  const [other] = (await describeDaemons(await findSockets(folders, name))).running;
  if (!other) return releaseMutex;
  releaseMutex?.();
  throw new ConfigError(
    `daemon run: the daemon runs already, with pid ${String(other.pid)}. Stop it (\`claude-agents-mcp daemon stop\`), or name another one: --daemon NAME.`,
  );
}

/** Listens and resolves to the path of the socket. Rejects with ConfigError that names the process holding `name`. */
export async function listenAs(
  listener: Pick<Listener, "listen">,
  { folders, name, state }: Pick<BindOptions, "folders" | "name"> & { readonly state: string },
): Promise<string> {
  try {
    return await listener.listen();
  } catch (error) {
    if (!(error instanceof NameTakenError)) throw error;
    const { running } = await describeDaemons(await findSockets(folders, name));
    // A hanging daemon does not answer on its socket, but has left a record.
    const known = running[0] ?? (await daemonsOnFile(state, isRunning)).find((each) => each.name === name);
    if (!known) throw error;
    const problem = `daemon run: the daemon "${name}" runs already, with pid ${String(known.pid)}`;
    throw new ConfigError(
      `${problem}. Stop it (\`claude-agents-mcp daemon stop ${name}\`), or choose another name.`,
      error,
    );
  }
}

async function findSockets(folders: readonly string[], name: string) {
  return (await listSockets(folders)).filter((place) => place.name === name);
}
