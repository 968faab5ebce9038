import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { JsonObject } from "../../../src/domain/json.ts";

/** The files in examples/cluster, as Docker and the servers read them. */

const FOLDER = "examples/cluster";
export const textOf = (file: string): string => readFileSync(join(FOLDER, file), "utf8");

const Words = z.array(z.string());
const Duration = z.string().regex(/^\d+s$/);

const Service = z.strictObject({
  image: z.string(),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  restart: z.literal("unless-stopped").optional(),
  stop_grace_period: Duration.optional(),
  environment: z.record(z.string(), z.string()).default({}),
  configs: z.array(z.strictObject({ source: z.string(), target: z.string() })).default([]),
  secrets: Words.default([]),
  depends_on: z
    .union([
      Words,
      z.record(
        z.string(),
        z.strictObject({ condition: z.enum(["service_healthy", "service_completed_successfully"]) }),
      ),
    ])
    .default([]),
  healthcheck: z.strictObject({ test: Words, interval: Duration }).optional(),
  command: Words.default([]),
  ports: Words.default([]),
  volumes: Words.default([]),
});
export type Service = z.infer<typeof Service>;

const File = z.strictObject({ file: z.string() });

/** The parts of the Compose specification that the example uses. */
const Compose = z.strictObject({
  name: z.string(),
  "x-image": z.unknown(),
  "x-node": z.unknown(),
  services: z.record(z.string(), Service),
  configs: z.record(z.string(), File),
  secrets: z.record(z.string(), File),
  volumes: z.record(z.string(), z.null()),
});

export const compose = Compose.parse(parse(textOf("compose.yaml"), { merge: true }));

/** Names and services of the nodes. */
export const nodes = Object.entries(compose.services).filter(([, { command }]) => command[0] === "serve");

/** Token of the user whom the example names. */
export const USER_TOKEN = "ccm_of-alice-in-these-tests-0123456789-abcdefgh";

/** Text of the nodes' settings, with `over` in place of paths and addresses in containers. */
export function nodeSettings(over: JsonObject = {}): string {
  const digest = createHash("sha256").update(USER_TOKEN).digest("hex");
  const text = textOf("node.json").replaceAll(/<SHA-256[^>]*>/g, digest);
  return JSON.stringify({ ...JsonObject.parse(JSON.parse(text)), ...over });
}
