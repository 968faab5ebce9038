import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { Webhook } from "standardwebhooks";
import { z } from "zod";
import { constants } from "../servers/constants.ts";

/** Receiver of the webhook on loopback; verifies deliveries with the library that real receivers use. */

export const SECRET = `whsec_${Buffer.from("the secret of these tests, 32 by").toString("base64")}`;

/** Environment of a server with `SECRET`. */
export const WITH_SECRET = { CLAUDE_CODE_MCP_NOTIFY_SECRET: SECRET };

/** Environment of a server whose second attempt comes after 450 s or more: too late for an approver `webhook:400000`. */
export const LATE_RETRY = constants({ notifyRetryMs: 3_600_000 });

const Payload = z.looseObject({
  id: z.string(),
  type: z.string().default(""),
  session: z.looseObject({ id: z.string(), principal: z.string(), cwd: z.string() }).optional(),
  request: z
    .looseObject({ requestId: z.string(), toolName: z.string(), summary: z.string(), input: z.looseObject({}) })
    .optional(),
  turn: z.looseObject({ outcome: z.string() }).optional(),
  answerUrl: z.string().default(""),
});
type Payload = z.infer<typeof Payload>;

export interface Delivery {
  readonly headers: IncomingHttpHeaders;
  /** Body as it arrived, with a valid signature. */
  readonly text: string;
  readonly payload: Payload;
  readonly response: ServerResponse;
}

export interface ReceiverServer {
  readonly url: string;
  /** All deliveries, oldest first. */
  readonly got: readonly Delivery[];
  /** Resolves with the next delivery for which `wanted` is true; begins with the first one. */
  next(wanted?: (delivery: Delivery) => boolean): Promise<Delivery>;
  close(): Promise<void>;
}

export const ofType =
  (type: string) =>
  ({ payload }: Delivery): boolean =>
    payload.type === type;

/** Calls `answer` for each delivery with a valid signature; answers all others 401. */
export async function startReceiver(
  answer: (delivery: Delivery, index: number) => void = ({ response }) => void response.end(),
  port = 0,
): Promise<ReceiverServer> {
  const webhook = new Webhook(SECRET);
  const got: Delivery[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      try {
        webhook.verify(text, headers);
      } catch {
        response.writeHead(401).end();
        return;
      }
      const delivery = { headers: request.headers, text, payload: Payload.parse(JSON.parse(text)), response };
      got.push(delivery);
      answer(delivery, got.length - 1);
      server.emit("delivered");
    });
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const listening = typeof address === "object" && address !== null ? address.port : 0;
  let seen = 0;
  return {
    url: `http://127.0.0.1:${String(listening)}/hook`,
    got,
    async next(wanted = () => true) {
      for (;;) {
        for (; seen < got.length; seen += 1) {
          const delivery = got[seen];
          if (!delivery || !wanted(delivery)) continue;
          seen += 1;
          return delivery;
        }
        await once(server, "delivered");
      }
    },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
