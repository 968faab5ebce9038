import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";

/**
 * The file in which Claude Code has written at least one message of the session. One that was killed before its first
 * request leaves none, or a file of listings only, which it then does not find itself.
 * Transcripts lie in a folder per project; a session is found whatever the folder it was started in is called.
 */
export async function transcriptOf(sessionId: string, configFolder: string): Promise<string | undefined> {
  const projects = join(configFolder, "projects");
  const names = await readdir(projects).catch(() => []);
  const files = names.map((name) => join(projects, name, `${sessionId}.jsonl`));
  const found = await Promise.all(files.map(async (file) => ((await holdsMessages(file)) ? [file] : [])));
  return found.flat().at(0);
}

/** Which of these prompts stand in it, as what began a turn or as what joined one. One that only waited has no id there. */
export async function promptsIn(transcript: string, promptIds: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const line of createInterface({ input: createReadStream(transcript) })) {
    for (const id of promptIds) if (line.includes(id)) found.add(id);
  }
  return found;
}

const FOLDER = /"cwd":("(?:[^"\\]|\\.)*")/;

/** The folder that the session was in last. */
export async function lastFolder(transcript: string): Promise<string | undefined> {
  let folder: string | undefined;
  for await (const line of createInterface({ input: createReadStream(transcript) })) {
    const [, quoted] = FOLDER.exec(line) ?? [];
    if (quoted !== undefined) folder = String(JSON.parse(quoted));
  }
  return folder;
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
