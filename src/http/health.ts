/** Whether the server is there, and whether it is to be given work. Both can be asked without a token: they say no more. */

export interface HealthOptions {
  readonly version: string;
  /** What the server is about to do instead of taking work; undefined when it takes some. */
  readonly busyWith: () => "starting" | "draining" | undefined;
  /** Rejects when the store cannot be read. */
  readonly readStore: () => Promise<unknown>;
}

export interface Health {
  /** `/healthz`: 200 as long as anything is answered. */
  live(): Response;
  /** `/readyz`: 200, or 503 with the reason, also when the store does not answer within two seconds. */
  ready(): Promise<Response>;
}

const STORE_MS = 2_000;

export function createHealth({ busyWith, readStore, version }: HealthOptions): Health {
  return {
    live: () => answer(200, { status: "ok", version, uptimeSeconds: Math.floor(process.uptime()) }),
    async ready() {
      const reason = busyWith() ?? (await storeFault(readStore)) ?? busyWith();
      return reason === undefined ? answer(200, { status: "ready" }) : answer(503, { status: "unready", reason });
    },
  };
}

/** The cause is in the server's log only: this route needs no token. */
async function storeFault(readStore: () => Promise<unknown>): Promise<"store" | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"store">((resolve) => (timer = setTimeout(() => resolve("store"), STORE_MS)));
  const read = readStore().then(
    () => undefined,
    () => "store" as const,
  );
  return Promise.race([read, late]).finally(() => clearTimeout(timer));
}

function answer(status: number, body: object): Response {
  return Response.json(body, { status, headers: { "Cache-Control": "no-store" } });
}
