/** Liveness and readiness. Neither needs a token, so causes of faults stay in the server's log. */

export interface HealthOptions {
  readonly version: string;
  /** Reason why the server takes no work; `undefined` if it does. */
  readonly busyWith: () => "starting" | "draining" | undefined;
  /** Rejects if the store cannot be read. */
  readonly readStore: () => Promise<unknown>;
}

export interface Health {
  /** `/healthz`: 200 while the server responds at all. */
  live(): Response;
  /** `/readyz`: 200, or 503 with the reason. A store that does not answer within `STORE_MS` is a reason. */
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

/** Hides the cause, because this route needs no token; the server's log has the cause. */
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
