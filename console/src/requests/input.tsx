import type { PendingRequest } from "../../../src/console/wire.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import { Diff } from "../parts/diff.tsx";
import { Code, Plain } from "./plain.tsx";
import { shapeOf } from "./words/subject.ts";

/** All that a tool would be called with. */
export function InputShown({ request }: { readonly request: PendingRequest }) {
  const shape = shapeOf(request);
  return (
    <div class="rq-input">
      {shape.kind === "command" && (
        <>
          {shape.description !== "" && (
            <p class="rq-description">
              <Plain text={shape.description} />
            </p>
          )}
          <Code label="Command" text={shape.command} />
        </>
      )}
      {shape.kind === "diffs" && request.toolName === "Write" && (
        <p class="rq-description">The whole file is written; what is in it now is lost.</p>
      )}
      {shape.kind === "diffs" && shape.diffs.map((diff, place) => <Diff key={place} {...diff} path={shape.path} />)}
      <Fields input={shape.rest} />
    </div>
  );
}

export function Fields({ input }: { readonly input: JsonObject }) {
  const entries = Object.entries(input);
  if (entries.length === 0) return undefined;
  return (
    <dl class="rq-fields">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Plain text={name} />
          </dt>
          <dd>
            <Value name={name} value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const SHORT = 200;

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  if (text.length > SHORT || text.includes("\n")) return <Code label={name} text={text} />;
  return (
    <code>
      <Plain text={text === "" ? '""' : text} />
    </code>
  );
}
