// Part of the MCP Registry's schema 2025-12-11 that our server.json uses, in zod. Stricter than the original: refuses unknown
// fields, which the registry would ignore.
// https://github.com/modelcontextprotocol/registry/blob/main/docs/reference/server-json/generic-server-json.md
import { z } from "zod";

const input = {
  description: z.string().exactOptional(),
  isRequired: z.boolean().exactOptional(),
  isSecret: z.boolean().exactOptional(),
  format: z.enum(["string", "number", "boolean", "filepath"]).exactOptional(),
  value: z.string().exactOptional(),
  default: z.string().exactOptional(),
  placeholder: z.string().exactOptional(),
  choices: z.array(z.string()).exactOptional(),
};

function hasFittingDefault({ choices, default: value, format }) {
  if (value === undefined) return true;
  return choices?.includes(value) !== false && (format !== "number" || /^-?\d+(?:\.\d+)?$/.test(value));
}

const named = z
  .strictObject({
    type: z.literal("named"),
    name: z.string().min(1),
    isRepeated: z.boolean().exactOptional(),
    ...input,
  })
  .refine(hasFittingDefault, { message: "the default is not a number, or not one of the choices" });

/** The registry refuses ranges. */
const version = z
  .string()
  .max(255)
  .regex(/^\d+\.\d+\.\d+(?:-[\w.-]+)?(?:\+[\w.-]+)?$/, "must be one version, and no range");

const npmPackage = z.strictObject({
  registryType: z.literal("npm"),
  identifier: z.string().regex(/^(?:@[a-z\d-][\w.-]*\/)?[a-z\d-][\w.-]*$/),
  version,
  transport: z.strictObject({ type: z.literal("stdio") }),
  packageArguments: z.array(named).exactOptional(),
  environmentVariables: z.array(z.strictObject({ name: z.string().min(1), ...input })).exactOptional(),
});

export const ServerJson = z.strictObject({
  $schema: z.literal("https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"),
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z\d.-]+\/[a-zA-Z\d._-]+$/),
  description: z.string().min(1).max(100),
  version,
  repository: z.strictObject({ url: z.url(), source: z.literal("github") }).exactOptional(),
  packages: z.array(npmPackage).min(1),
});
