import { z } from "zod";

/** Error of `get_settings`. `message` is Claude Code's text, `path` the key in the file, "" for the whole file. */
const Unread = z.object({ file: z.string().catch(""), path: z.string().catch(""), message: z.string() });

const WithErrors = z.object({ errors: z.array(Unread).catch([]) });

/** Returns a warning for each settings file that Claude Code ignores because of an error, from its answer to `get_settings`. */
export function unreadFiles(answer: unknown): string[] {
  const { errors } = WithErrors.catch({ errors: [] }).parse(answer);
  const first = errors.filter(({ file }, index) => errors.findIndex((each) => each.file === file) === index);
  return first.map(({ file, message, path }) => {
    const where = path === "" ? "" : `${path}: `;
    const why = `${where}${message}`.slice(0, MAX_REASON).replace(/\.$/, "");
    return `Claude Code ignores all of ${file === "" ? "a settings file" : file}, its deny rules and hooks included: ${why}.`;
  });
}

/** Maximum length of a reason, characters. */
const MAX_REASON = 300;
