import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Principal } from "../domain/principal.ts";

/**
 * Ids of protocol sessions. Some clients never recover from the 404 of a session that is not known any more, so an id carries what its
 * client has said in `initialize`: the next server goes on with it. Signed for one principal; it is no secret and gives no right.
 */

/** Facts that a server must know of a client of 2025 to go on with it: the params of `initialize`, without what nothing here reads. */
export interface Opening {
  readonly protocolVersion: string;
  readonly capabilities: { readonly elicitation?: Readonly<Partial<Record<FormKind, object>>> };
  readonly clientInfo: { readonly name: string; readonly version: string };
}

type FormKind = z.infer<typeof FormKinds>[number];

/** Ways in which the client can ask its person; empty where it cannot. */
const FormKinds = z.array(z.enum(["form", "url"]));

/** A random part, the time of issue in seconds since the epoch, and the opening. An array: it is sent with every request. */
const Payload = z.tuple([z.string(), z.number(), z.string(), FormKinds, z.string(), z.string()]);
type Payload = z.infer<typeof Payload>;

const Initialize = z.object({
  params: z.object({
    protocolVersion: z.string(),
    capabilities: z.object({ elicitation: z.record(z.string(), z.unknown()).optional() }),
    clientInfo: z.object({ name: z.string(), version: z.string() }),
  }),
});

/** Lifetime of an id from its issue, ms (30 days): longer than a client runs. */
const GOOD_FOR_MS = 2_592_000_000;
/** Length of a name that a client gives itself, or of a version, characters. */
const MAX_TEXT = 64;
/** No id that was issued here is longer. */
const MAX_ID = 1_200;
const RANDOM_BYTES = 12;

export class SessionIds {
  readonly #key: () => Promise<Uint8Array>;

  /** `key` is read with the first id; servers that have the same take each other's sessions up. */
  constructor(key: () => Promise<Uint8Array>) {
    this.#key = key;
  }

  /** `body` is the message that begins the session. */
  async issue(principal: Principal, body: unknown): Promise<string> {
    const [at, random] = [Math.floor(Date.now() / 1_000), randomBytes(RANDOM_BYTES).toString("base64url")];
    const payload: Payload = [random, at, ...said(body)];
    const encoded = Buffer.from(JSON.stringify(payload)).toString("base64url");
    return `${encoded}.${await this.#sign(principal, encoded)}`;
  }

  /** Undefined for an id that was not issued to this principal by a server with the same key, or too long ago. */
  async read(principal: Principal, id: string): Promise<Opening | undefined> {
    const [encoded = "", signature = "", ...rest] = id.length > MAX_ID ? [] : id.split(".");
    if (rest.length > 0 || !isSame(signature, await this.#sign(principal, encoded))) return undefined;
    const { data } = Payload.safeParse(JSON.parse(Buffer.from(encoded, "base64url").toString("utf8")));
    if (!data) return undefined;
    const [, at, protocolVersion, kinds, name, version] = data;
    if (at * 1_000 + GOOD_FOR_MS < Date.now()) return undefined;
    const elicitation = Object.fromEntries(kinds.map((kind) => [kind, {}]));
    return {
      protocolVersion,
      capabilities: kinds.length > 0 ? { elicitation } : {},
      clientInfo: { name, version },
    };
  }

  async #sign(principal: Principal, encoded: string): Promise<string> {
    return createHmac("sha256", await this.#key())
      .update(JSON.stringify([principal, encoded]))
      .digest("base64url");
  }
}

/** Compares texts: one signature has several spellings. Takes the same time wherever they differ. */
function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Reads an `initialize`. Another message begins no session: what its id says does not matter. */
function said(body: unknown): [string, FormKind[], string, string] {
  const { data } = Initialize.safeParse([body].flat()[0]);
  if (!data) return ["", [], "", ""];
  const { capabilities, clientInfo, protocolVersion } = data.params;
  const { elicitation } = capabilities;
  const [version, name, release] = [protocolVersion, clientInfo.name, clientInfo.version].map((text) =>
    text.slice(0, MAX_TEXT),
  );
  return [version ?? "", elicitation ? formKinds(elicitation) : [], name ?? "", release ?? ""];
}

/** An empty capability means forms. */
function formKinds(elicitation: Readonly<Record<string, unknown>>): FormKind[] {
  const named = FormKinds.element.options.filter((kind) => Object.hasOwn(elicitation, kind));
  return named.length > 0 ? named : ["form"];
}
