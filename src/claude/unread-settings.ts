import { z } from "zod";

/** `message` is Claude Code's, `path` the key in the file, "" for the file itself. */
const Unread = z.object({ file: z.string().catch(""), path: z.string().catch(""), message: z.string() });

const WithErrors = z.object({ errors: z.array(Unread).catch([]) });

/** A sentence for each file that the answer to `get_settings` names. */
export function unreadFiles(answer: unknown): string[] {
  const { errors } = WithErrors.catch({ errors: [] }).parse(answer);
  const first = errors.filter(({ file }, index) => errors.findIndex((each) => each.file === file) === index);
  return first.map(({ file, message, path }) => {
    const where = path === "" ? "" : `${path}: `;
    const why = `${where}${message}`.slice(0, MAX_REASON).replace(/\.$/, "");
    return `Claude Code ignores all of ${file === "" ? "a settings file" : file}, its deny rules and hooks included: ${why}.`;
  });
}

/** Characters. */
const MAX_REASON = 300;
