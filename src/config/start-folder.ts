import { invalidArgument } from "../domain/error.ts";

/** Looks the folder up at each use, because it can be deleted meanwhile. Throws AppError. */
export function startFolder(): string {
  try {
    return process.cwd();
  } catch {
    throw invalidArgument(
      "cwd",
      "the folder in which the server was started no longer exists. Name an existing folder.",
    );
  }
}
