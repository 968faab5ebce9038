import type { PendingRequest } from "../../../src/console/wire.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import { Change } from "./change.tsx";
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
      {shape.kind === "diffs" && (
        <>
          <p class="rq-description">
            <code>
              <Plain text={shape.path} />
            </code>
            {request.toolName === "Write" && <span class="soft"> is overwritten: existing content is lost</span>}
          </p>
          {shape.diffs.map((change, place) => (
            <Change key={place} {...change} />
          ))}
        </>
      )}
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
