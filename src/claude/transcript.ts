import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * Whether Claude Code can resume the session: it has written a transcript with at least one message in it. One that was
 * killed before its first request leaves none, or a file of listings only, which it then does not find itself.
 * Transcripts lie in a folder per project; a session is found whatever the folder it was started in is called.
 */
export async function hasTranscript(sessionId: string, configFolder: string): Promise<boolean> {
  const projects = join(configFolder, "projects");
  const names = await readdir(projects).catch(() => []);
  const found = await Promise.all(names.map(async (name) => holdsMessages(join(projects, name, `${sessionId}.jsonl`))));
  return found.includes(true);
}

const MESSAGE = /"type":"(?:user|assistant)"/;

async function holdsMessages(file: string): Promise<boolean> {
  const stream = createReadStream(file);
  try {
    for await (const line of createInterface({ input: stream })) if (MESSAGE.test(line)) return true;
    return false;
  } catch {
    // There is no such file in this project.
    return false;
  } finally {
    stream.destroy();
  }
}
