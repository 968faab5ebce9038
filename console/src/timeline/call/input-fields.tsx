import type { JsonObject } from "../../../../src/domain/json.ts";
import { truncateLine, displayText } from "../../parts/text.ts";
import { Json } from "../output.tsx";
import facts from "../../parts/facts.module.css";

/** Maximum characters of a value that needs no `Json`. */
const SHORT = 300;

/** Input of a tool: field by field if all values are short, otherwise as JSON. */
export function Fields({ input }: { readonly input: JsonObject }) {
  const fields = Object.entries(input);
  if (fields.length === 0) return null;
  if (!fields.every(([, value]) => isShort(value))) return <Json value={input} label="Input, as JSON" />;
  return (
    <dl class={facts["facts"]}>
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{truncateLine(name.replaceAll("_", " "), 60)}</dt>
          <dd>
            <code>{displayText(String(value))}</code>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isShort(value: unknown): boolean {
  return typeof value === "string" ? value.length <= SHORT : typeof value === "number" || typeof value === "boolean";
}
