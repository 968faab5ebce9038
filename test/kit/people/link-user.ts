import { Client } from "@modelcontextprotocol/client";
import { z } from "zod";

import type { LinkedRequest } from "../../../src/console/wire.ts";
import { send } from "../clients/console-client.ts";
import { connectOver, post, type HttpConnection, type HttpServer } from "../servers/http-server.ts";
import { toolCalls } from "./fake-user.ts";

/** A person at a client that opens URLs, and the page of one request without a browser. */

const Elicited = z.looseObject({
  mode: z.enum(["form", "url"]).default("form"),
  message: z.string(),
  url: z.string().optional(),
  elicitationId: z.string().optional(),
});
type Elicited = z.infer<typeof Elicited>;
type Action = "accept" | "decline" | "cancel";

export class LinkUser {
  /** Elicitations so far. */
  readonly seen: Elicited[] = [];
  /** Ids of `notifications/elicitation/complete`. */
  readonly completed: string[] = [];
  does: (asked: Elicited) => Action | Promise<Action> = () => "accept";
  #next: (() => void) | undefined;

  /** Connects a client of the era that opens URLs, or shows forms alone. */
  async connect(
    { url, ...http }: Pick<HttpServer, "token" | "url">,
    {
      era = "modern",
      opensUrls = true,
      token = http.token,
    }: { era?: "legacy" | "modern"; opensUrls?: boolean; token?: string } = {},
  ): Promise<HttpConnection> {
    const able = { capabilities: { elicitation: { form: {}, ...(opensUrls && { url: {} }) } } };
    const client = new Client(
      { name: "opens-urls", version: "1.0.0" },
      { ...able, ...(era === "modern" && { versionNegotiation: { mode: "auto" } }) },
    );
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const asked = Elicited.parse(params);
      this.seen.push(asked);
      this.#next?.();
      return { action: await this.does(asked) };
    });
    client.setNotificationHandler("notifications/elicitation/complete", ({ params }) => {
      this.completed.push(params.elicitationId);
    });
    return connectOver(new URL(url), client, token);
  }

  /** Resolves with the URL of the `count`-th elicitation, which must be a link. */
  async link(count = 1): Promise<string> {
    while (this.seen.length < count) await new Promise<void>((resolve) => (this.#next = resolve));
    const { url } = this.seen[count - 1]!;
    if (url === undefined) throw new Error(`no link: ${JSON.stringify(this.seen[count - 1])}`);
    return url;
  }
}

/** Content that no form holds. */
export const LONG = Array.from({ length: 300 }, (_, line) => `line ${String(line)} of the file`).join("\n");

export const longWrite = (file: string) => toolCalls([{ name: "Write", input: { file_path: file, content: LONG } }]);

/** Sends the secret of the link, as the page does. */
export async function openLink(http: HttpServer, url: string, headers: Record<string, string> = {}): Promise<Response> {
  const { hash, origin, pathname } = new URL(url);
  if (origin !== http.origin || pathname !== "/console/") throw new Error(`not a link to this server: ${url}`);
  return send(http, "api/links", post({ link: hash.replace("#link=", "") }, headers));
}

export interface OpenedPage {
  readonly id: string;
  readonly key: string;
  readonly cookie: string;
  ask(init?: RequestInit): Promise<Response>;
  read(): Promise<LinkedRequest>;
  answer(body: object): Promise<Response>;
}

export async function openPage(http: HttpServer, url: string): Promise<OpenedPage> {
  return pageOf(http, await openLink(http, url));
}

/** Page of the first opening of a link. */
export async function pageOf(http: HttpServer, opened: Response): Promise<OpenedPage> {
  if (opened.status !== 200) throw new Error(`not opened: ${String(opened.status)} ${await opened.text()}`);
  const { id, key } = z.object({ id: z.string(), key: z.string() }).parse(await opened.json());
  const cookie = opened.headers.getSetCookie().join().replace(/;.*/s, "");
  const headers = { cookie, "x-request-key": key };
  const ask: OpenedPage["ask"] = async (init) => send(http, `api/links/${id}`, { headers, ...init });
  return {
    id,
    key,
    cookie,
    ask,
    read: async () => (await (await ask()).json()) as LinkedRequest,
    answer: async (body) => ask(post(body, headers)),
  };
}

export async function problemOf(answer: Promise<Response>): Promise<[status: number, error: string]> {
  const response = await answer;
  const { error } = z.looseObject({ error: z.string(), message: z.string().min(1) }).parse(await response.json());
  return [response.status, error];
}
