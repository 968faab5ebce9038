import { EventSourceParserStream } from "eventsource-parser/stream";

import type { LiveEvents, PendingRequest, SessionDetail } from "../../../src/console/wire.ts";
import { post as json, type HttpServer } from "../servers/http-server.ts";

/** Requests of the console's page to its server, without a browser. */

/** `cookie` and `key` of a signed-in browser, and requests with these credentials. */
export interface ConsoleClient {
  readonly cookie: string;
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  get<T>(path: string): Promise<T>;
  /** Resolves with the response for any status; `get` throws. */
  ask(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  /** Starts a session; resolves with its id. */
  start(prompt: string, cwd: string, more?: object): Promise<string>;
  /** Resolves with the first open request of the session other than `before`. */
  asked(sessionId: string, before?: string): Promise<PendingRequest>;
  /** Resolves when no turn runs and no background task is left. */
  end(sessionId: string): Promise<SessionDetail>;
}

type Origin = Pick<HttpServer, "origin">;

/** Sends a request as the page does; without credentials, the server knows no user. */
export async function send({ origin }: Origin, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(`/console/${path}`, origin), { redirect: "manual", ...init });
}

export async function signIn(http: Origin, token: string): Promise<ConsoleClient> {
  const answer = await send(http, "api/sign-in", json({ token }));
  if (answer.status !== 200) throw new Error(`not signed in: ${String(answer.status)} ${await answer.text()}`);
  const { key } = (await answer.json()) as { key: string };
  const cookie = answer.headers.getSetCookie().join().replace(/;.*/s, "");
  return signed(http, { cookie, key });
}

export function signed(http: Origin, { cookie, key }: Pick<ConsoleClient, "cookie" | "key">): ConsoleClient {
  const headers = { cookie, "x-console-key": key };
  const ask: ConsoleClient["ask"] = async (path, more = {}) =>
    send(http, `api/${path}`, { headers: { ...headers, ...more } });
  const post: ConsoleClient["post"] = async (path, body = {}, more = {}) =>
    send(http, `api/${path}`, json(body, { ...headers, ...more }));
  const get = async <T>(path: string): Promise<T> => readJson(await ask(path));
  /** Reads the live stream until `wanted` returns a value for an event of `kind`. */
  const until = async <K extends keyof LiveEvents, T>(
    sessionId: string,
    kind: K,
    wanted: (data: LiveEvents[K]) => T | undefined,
  ): Promise<T> => {
    const query = new URLSearchParams({ session: sessionId });
    for await (const event of live(await ask(`live?${query.toString()}`))) {
      const found = event.kind === kind ? wanted(event.data as LiveEvents[K]) : undefined;
      if (found !== undefined) return found;
    }
    throw new Error("the stream has ended");
  };
  return {
    cookie,
    key,
    headers,
    get,
    ask,
    post,
    async start(prompt, cwd, more = {}) {
      const { sessionId } = await readJson<{ sessionId: string }>(await post("sessions", { prompt, cwd, ...more }));
      return sessionId;
    },
    asked: async (sessionId, before) =>
      until(sessionId, "requests", (open) =>
        open.find((request) => request.sessionId === sessionId && request.requestId !== before),
      ),
    end: async (sessionId) =>
      until(sessionId, "session", (detail) => {
        if (detail.requests > 0) throw new Error(`${sessionId} asks`);
        const { background, lastOutcome, turnStartedAt } = detail;
        const isOver = turnStartedAt === undefined && lastOutcome !== undefined && background === 0;
        return isOver ? detail : undefined;
      }),
  };
}

async function readJson<T>(answer: Response): Promise<T> {
  if (!answer.ok) throw new Error(`${answer.url}: ${String(answer.status)} ${await answer.text()}`);
  return (await answer.json()) as T;
}

export type Live = {
  [K in keyof LiveEvents]: { kind: K; id: string | undefined; data: LiveEvents[K] };
}[keyof LiveEvents];

/** Yields the events of a stream. A reader that stops early closes the stream. */
export async function* live({ body }: Response): AsyncGenerator<Live> {
  if (!body) return;
  const events = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data, event, id } of events) yield { kind: event, id, data: JSON.parse(data) } as Live;
}
