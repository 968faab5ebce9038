import type { JsonObject } from "../../../../src/domain/json.ts";
import { plain } from "../../parts/plain.ts";
import { objectsAt, textAt } from "../../parts/json.ts";

const MARKS: ReadonlyMap<string, readonly [mark: string, words: string]> = new Map([
  ["completed", ["✓", "Done"]],
  ["in_progress", ["●", "In progress"]],
  ["pending", ["○", "To do"]],
]);

/** What Claude Code means to do, and how far it is. */
export function Todos({ input }: { readonly input: JsonObject }) {
  return (
    <ul class="todos">
      {objectsAt(input, "todos").map((todo, at) => {
        const status = textAt(todo, "status") ?? "pending";
        const [mark, words] = MARKS.get(status) ?? ["○", status];
        return (
          <li key={at} class={status === "completed" || status === "in_progress" ? status : "pending"}>
            <span aria-hidden="true">{mark}</span>
            <span class="unseen">{plain(words)}: </span>
            {plain(textAt(todo, "content") ?? "")}
          </li>
        );
      })}
    </ul>
  );
}
