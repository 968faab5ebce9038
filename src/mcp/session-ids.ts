import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { Principal } from "../domain/principal.ts";

/**
 * Ids of protocol sessions. Some clients never recover from the 404 of an unknown session, so an id carries the client's
 * `initialize`, from which the next server continues. Signed for one principal; neither a secret nor a credential.
 */

/**
 * Facts needed to continue with a client of the 2025 era: the params of `initialize`, reduced to the fields that this server
 * reads.
 */
export interface Opening {
  readonly protocolVersion: string;
  readonly capabilities: { readonly elicitation?: Readonly<Partial<Record<FormKind, object>>> };
  readonly clientInfo: { readonly name: string; readonly version: string };
}

type FormKind = z.infer<typeof FormKinds>[number];

/** Kinds of elicitation that the client supports; empty for none. */
const FormKinds = z.array(z.enum(["form", "url"]));

/**
 * Random part, time of issue in s since the epoch, and the opening. An array, to keep the id short: clients send it with every
 * request.
 */
const Payload = z.tuple([z.string(), z.number(), z.string(), FormKinds, z.string(), z.string()]);
type Payload = z.infer<typeof Payload>;

const Initialize = z.object({
  params: z.object({
    protocolVersion: z.string(),
    capabilities: z.object({ elicitation: z.record(z.string(), z.unknown()).optional() }),
    clientInfo: z.object({ name: z.string(), version: z.string() }),
  }),
});

/** Lifetime of an id after its issue, ms (30 days): longer than a client runs. */
const GOOD_FOR_MS = 2_592_000_000;
/** Maximum length of a client's name or version, characters. */
const MAX_TEXT = 64;
/** Upper bound of the length of issued ids, characters. */
const MAX_ID = 1_200;
const RANDOM_BYTES = 12;

export class SessionIds {
  readonly #key: () => Promise<Uint8Array>;

  /** `key` is read with the first id. Servers with equal keys accept each other's ids. */
  constructor(key: () => Promise<Uint8Array>) {
    this.#key = key;
  }

  /** `body` is the message that begins the session. */
  async issue(principal: Principal, body: unknown): Promise<string> {
    const [at, random] = [Math.floor(Date.now() / 1_000), randomBytes(RANDOM_BYTES).toString("base64url")];
    const payload: Payload = [random, at, ...openingFields(body)];
    const encoded = Buffer.from(JSON.stringify(payload)).toString("base64url");
    return `${encoded}.${await this.#sign(principal, encoded)}`;
  }

  /** Resolves to `undefined` for an expired id, or if no server with this key has issued the id to this principal. */
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

/** Compares text, not bytes, because one signature has several spellings in base64url. Takes constant time. */
function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Reads the opening from `initialize`. Another message begins no session, so its id may carry empty fields. */
function openingFields(body: unknown): [string, FormKind[], string, string] {
  const { data } = Initialize.safeParse([body].flat()[0]);
  if (!data) return ["", [], "", ""];
  const { capabilities, clientInfo, protocolVersion } = data.params;
  const { elicitation } = capabilities;
  const [version, name, release] = [protocolVersion, clientInfo.name, clientInfo.version].map((text) =>
    text.slice(0, MAX_TEXT),
  );
  return [version ?? "", elicitation ? formKinds(elicitation) : [], name ?? "", release ?? ""];
}

/** An empty capability means `form`. */
function formKinds(elicitation: Readonly<Record<string, unknown>>): FormKind[] {
  const named = FormKinds.element.options.filter((kind) => Object.hasOwn(elicitation, kind));
  return named.length > 0 ? named : ["form"];
}
