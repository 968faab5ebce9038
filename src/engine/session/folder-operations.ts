import { AppError } from "../../domain/error.ts";
import { optionsOf } from "../../domain/session.ts";
import type { Engine } from "../api.ts";
import type { EngineNode, EngineOptions } from "../engine-node.ts";
import { placedSession } from "../policy/operator.ts";
import { requireReadable } from "../ports.ts";
import { requireHere } from "./build-command.ts";
import { requireEnvironment } from "./environment.ts";
import type { SessionReader } from "./readers.ts";

/** Operations on the files of a session: its folder, and its conversation. */
export function createFolderOperations(
  options: EngineOptions & Pick<EngineNode, "placement">,
  reader: SessionReader,
): Pick<Engine, "pack" | "workTree"> {
  const { backend, placement, runtime } = options;
  const find: SessionReader["get"] = async (principal, sessionId) => {
    const record = requireReadable(await reader.get(principal, sessionId));
    await requireHere(placement, record, "action");
    return record;
  };
  return {
    workTree: async (...session) => runtime.workTree(placedSession(options, await find(...session))),
    pack: async (principal, sessionId) => {
      const record = await find(principal, sessionId);
      const { spec, state } = record;
      const check = async () => {
        const now = (await reader.get(principal, sessionId)).state;
        if (now.turn === null && now.turnCount === state.turnCount) return;
        const advice = "Pack the session again.";
        throw new AppError("SESSION_BUSY", `A turn has begun while the session was packed. ${advice}`, { sessionId });
      };
      const place = {
        ...placedSession(options, record),
        options: optionsOf(spec, state),
        environmentId: requireEnvironment(options, record),
        transcriptId: state.transcriptId ?? sessionId,
      };
      const readLog = async (from: number, limit: number) => backend.log.read(sessionId, from, limit);
      return runtime.pack(place, { record, readLog, check });
    },
  };
}
