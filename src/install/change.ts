import { dirname } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Client, Scope } from "./clients.ts";
import { JsonObject } from "../domain/json.ts";
import type { Entry, Format, Path } from "./format.ts";
import { PRINTED, UnusableFile } from "./format.ts";
import type { Places } from "./places.ts";
import { entryName } from "./ssh/host.ts";
import { ChangeRecord, digestOf, type Stored } from "./record.ts";
import {
  makeFolders,
  readTarget,
  readText,
  removeFolders,
  removeTarget,
  writeTarget,
  type TargetFile,
} from "./target-file.ts";

/** Plans and writes the change of a client's file: adds or removes the entry. */

export interface Aim {
  readonly client: Client;
  readonly scope: Scope;
  /** Name of the machine that the entry reaches by SSH. Absent for the server on this machine. */
  readonly host?: string | undefined;
  readonly places: Places;
  readonly stateFolder: string;
}

export interface Change {
  /** Path where the client looks for the file, links not resolved. */
  readonly file: string;
  readonly before: string | undefined;
  /** `undefined` if the file is to be deleted. */
  readonly after: string | undefined;
  /** Writes the file. Resolves to the path of a copy of the former file, if any. */
  readonly perform: () => Promise<string | undefined>;
}

/** State of the entry in a file. */
export type Presence = "absent" | "installed" | "different";

type Place = Pick<Aim, "client" | "host">;

const pathOf = ({ client, host }: Place): Path => [client.table, entryName(host)];

/** Throws UnusableFile; the message begins with the file. */
export async function planInstall(aim: Aim, entry: Entry): Promise<Change> {
  return planOn(aim, ({ file, format, record, target }) => {
    const before = target.text;
    const after = withEntry(aim, format, { text: before ?? "", entry });
    const perform = async () => {
      const copy = before === undefined ? undefined : await record.keepCopy(target.mark + before);
      const former = await record.read();
      const folders = await makeFolders(target);
      try {
        // Recorded before the file is written, because `uninstall` relies on the record.
        await record.write(nextRecord(former, { before, folders, written: digestOf(after) }));
        await writeTarget(target, after);
      } catch (error) {
        await removeFolders(folders);
        await (former ? record.write(former) : record.forget()).catch(() => undefined);
        throw error;
      }
      return copy;
    };
    return { file, before, after, perform };
  });
}

/**
 * Returns the record for this `install`. If the file is unchanged since the last `install`, `uninstall` can still restore the
 * text before the first, or delete a file created by `install`. A file edited meanwhile is the new original, never deleted.
 */
function nextRecord(
  former: Stored | undefined,
  { before, folders, written }: { before: string | undefined; folders: string[]; written: string },
): Omit<Stored, "file"> {
  if (before === undefined) return { before: "", isNew: true, folders, written };
  if (former === undefined) return { before, isNew: false, folders, written };
  const isUntouched = digestOf(before) === former.written;
  if (!isUntouched) return { ...former, before, isNew: false, written };
  return { ...former, written };
}

/** Returns `text` with `entry`, every other byte unchanged. */
export function withEntry(place: Place, format: Format, { entry, text }: { entry: Entry; text: string }): string {
  const { client } = place;
  const path = pathOf(place);
  const start = text === "" && client.head ? `${JSON.stringify(client.head, null, 2)}\n` : text;
  const after = format.set(start, path, entry);
  const [was, is] = [format.parse(start, path), format.parse(after, path)];
  const present = entryIn(is, path);
  const isRight = Object.entries(entry).every(([key, value]) => isDeepStrictEqual(present?.[key], value));
  if (!isRight || !isDeepStrictEqual(withoutEntry(was, path), withoutEntry(is, path))) throw unusualFile();
  return after;
}

/** Error for unusual syntax, such as a list of tables in TOML. */
function unusualFile(): UnusableFile {
  return new UnusableFile(`cannot be edited here without a change to the rest of it. Edit it by hand: ${PRINTED}.`);
}

export async function planUninstall(aim: Aim): Promise<Change> {
  return planOn(aim, async ({ file, format, record, target }) => {
    const before = target.text;
    const path = pathOf(aim);
    if (before === undefined || entryIn(format.parse(before, path), path) === undefined) {
      return { file, before, after: before, perform: async () => Promise.resolve(undefined) };
    }
    const stored = await record.read();
    const after = textWithout(before, aim, { format, stored });
    const perform = async () => {
      const copy = await record.keepCopy(target.mark + before);
      if (after === undefined) await removeTarget(target, stored?.folders ?? []);
      else await writeTarget(target, after);
      await record.forget();
      return copy;
    };
    return { file, before, after, perform };
  });
}

interface Recorded {
  readonly format: Format;
  readonly stored: Stored | undefined;
}

/** Returns `undefined` if the file is to be deleted: `install` created it, and nothing else is in it. */
function textWithout(text: string, place: Place, { format, stored }: Recorded): string | undefined {
  const { client } = place;
  const path = pathOf(place);
  const former = stored && format.parse(stored.before, path);
  const isNew = stored?.isNew === true;
  // Restores the original text unless an entry for this server was in it, perhaps written by hand.
  if (former && entryIn(former, path) === undefined && digestOf(text) === stored.written) {
    return isNew ? undefined : stored.before;
  }
  const isTableOurs = isNew || (former !== undefined && !Object.hasOwn(former, client.table));
  const after = format.remove(text, path, isTableOurs ? "empty table" : "entry");
  const rest = format.parse(after, path);
  if (!isDeepStrictEqual(withoutEntry(format.parse(text, path), path), withoutEntry(rest, path))) {
    throw unusualFile();
  }
  return isNew && isDeepStrictEqual(rest, client.head ?? {}) ? undefined : after;
}

/** Throws UnusableFile for an unreadable file. */
export async function readPresence(aim: Aim, entry: Entry): Promise<Presence> {
  const present = await readEntry(aim);
  if (present === undefined) return "absent";
  const isSame = Object.entries(entry).every(([key, value]) => isDeepStrictEqual(present[key], value));
  return isSame ? "installed" : "different";
}

/** Returns the entry in the file, even if the file is not writable. Throws UnusableFile for an unreadable file. */
export async function readEntry(aim: Aim): Promise<JsonObject | undefined> {
  const file = fileOf(aim) ?? "";
  try {
    const text = await readText(file);
    const path = pathOf(aim);
    return text === undefined ? undefined : entryIn((await formatOf(aim.client)).parse(text, path), path);
  } catch (error) {
    throw namedError(file, error);
  }
}

/** Returns the names of the servers in the file; none if the file is unreadable. */
export async function serverNames(aim: Aim): Promise<string[]> {
  try {
    const text = await readText(fileOf(aim) ?? "");
    const read = text === undefined ? {} : (await formatOf(aim.client)).parse(text, pathOf(aim));
    return Object.keys(JsonObject.safeParse(read[aim.client.table]).data ?? {});
  } catch {
    return [];
  }
}

export async function formatOf({ format }: Client): Promise<Format> {
  if (format === "toml") return (await import("./toml-format.ts")).TOML_FORMAT;
  return (await import("./json-format.ts")).JSON_FORMAT;
}

/** Returns `undefined` if the client has no such scope. */
export function fileOf({ client, places, scope }: Pick<Aim, "client" | "places" | "scope">): string | undefined {
  return client.files[scope]?.(places);
}

interface Opened {
  readonly file: string;
  readonly format: Format;
  readonly record: ChangeRecord;
  readonly target: TargetFile;
}

const [PRIVATE, SHARED] = [0o600, 0o644];

async function planOn(aim: Aim, plan: (opened: Opened) => Change | Promise<Change>): Promise<Change> {
  const { client, host, places, scope, stateFolder } = aim;
  const file = fileOf(aim);
  if (file === undefined) throw new Error(`${client.id} has no scope ${scope}`);
  // Links of a project may not lead outside the project, which may come from others. The user's own links may lead anywhere
  // within home or the folder of the file.
  const within = scope === "project" ? [places.project] : [places.home, dirname(file)];
  try {
    const target = await readTarget(file, within, scope === "project" ? SHARED : PRIVATE);
    const record = new ChangeRecord(stateFolder, host === undefined ? client.id : `${client.id}-${host}`, target.path);
    const change = await plan({ file, format: await formatOf(client), record, target });
    const perform = async () =>
      change.perform().catch((error: unknown) => {
        throw namedError(file, error, "was left as it is");
      });
    return { ...change, perform };
  } catch (error) {
    throw namedError(file, error);
  }
}

function namedError(file: string, error: unknown, state = "cannot be read"): unknown {
  if (error instanceof UnusableFile) return new UnusableFile(`${file} ${error.message}`);
  // Parsers and comparisons recurse, so deep nesting exhausts the stack.
  if (error instanceof RangeError)
    return new UnusableFile(`${file} is nested too deeply. Edit it by hand: ${PRINTED}.`);
  if (error instanceof Error && "syscall" in error) {
    return new UnusableFile(`${file} ${state}: ${error.message}. Fix that, or edit it by hand: ${PRINTED}.`);
  }
  return error;
}

function entryIn(value: unknown, [table, name]: Path): JsonObject | undefined {
  const servers = JsonObject.safeParse(JsonObject.parse(value)[table]);
  if (!servers.success || !Object.hasOwn(servers.data, name)) return undefined;
  const entry = JsonObject.safeParse(servers.data[name]);
  return entry.success ? entry.data : {};
}

/** Returns the content of the file without this server's entry. An empty table counts as absent. */
function withoutEntry(value: JsonObject, [table, name]: Path): JsonObject {
  const { [table]: servers, ...rest } = value;
  const others = JsonObject.safeParse(servers);
  if (!others.success) return value;
  const left = Object.entries(others.data).filter(([key]) => key !== name);
  return left.length === 0 ? rest : { ...rest, [table]: Object.fromEntries(left) };
}
