import { oneLine } from "../parts/plain.ts";
import { dropNotices, notices } from "../state/notices.ts";
import { route } from "../state/route.ts";

/** Above a session: what the server has warned of when it was started. */
export function StartNotices() {
  const at = route.value;
  if (at.view !== "session") return null;
  const texts = notices.value[at.id];
  if (!texts) return null;
  return (
    <div class="notices" role="status">
      <ul>
        {texts.map((text) => (
          <li key={text}>{oneLine(text)}</li>
        ))}
      </ul>
      <button type="button" class="quiet" onClick={() => dropNotices(at.id)}>
        Dismiss
      </button>
    </div>
  );
}
