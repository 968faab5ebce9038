import { createHmac } from "node:crypto";

/** What a delivery carries so that its receiver knows whose it is: Standard Webhooks, https://www.standardwebhooks.com. */

export interface Signed {
  readonly "webhook-id": string;
  readonly "webhook-timestamp": string;
  readonly "webhook-signature": string;
}

/** `at`: of this attempt, ms since the epoch. Receivers refuse what is older than some minutes. */
export function sign(key: Buffer, { at, body, id }: { id: string; at: number; body: string }): Signed {
  const timestamp = String(Math.floor(at / 1000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`, "utf8").digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
