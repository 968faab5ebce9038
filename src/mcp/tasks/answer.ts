import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  type Result,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import { runTaskMethod, type TaskMethod } from "./methods.ts";
import type { Task } from "./task.ts";
import { openCall, roundOf } from "../call.ts";
import { paramsOf } from "../forms.ts";
import type { ServerOptions, TaskOptions } from "../server-options.ts";
import { refusalOf } from "../refusal.ts";
import { resultOf } from "../tools.ts";
import { TASKS_EXTENSION, timesOf } from "./extension.ts";

/** Modern clients state capabilities and log level with each request. */
const NOTHING_SAID = { capabilities: undefined, clientInfo: undefined, logLevel: undefined };

/** Answers a request of the Tasks extension, open only to modern clients that declare the extension. */
export async function answerTask(
  method: TaskMethod,
  params: unknown,
  context: ServerContext,
  options: ServerOptions & { readonly tasks: TaskOptions },
): Promise<Result> {
  const { call } = openCall(context, NOTHING_SAID, {
    round: roundOf(context),
    reported: { progress: 0 },
    unattended: options.unattended,
    leaving: options.leaving,
  });
  if (!call.client.tasks) throw notDeclared();
  const report: ReportFault = (fault, cause) => options.log.error("a task failed", { fault, method, error: cause });
  try {
    const task = await runTaskMethod(method, params, call, await options.deps());
    return task ? { ...taskOf(task), ...timesOf(options.tasks) } : {};
  } catch (error) {
    throw refusalOf(asAppError(error, report));
  }
}

function notDeclared(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError(
    { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
    `This client does not declare the extension ${TASKS_EXTENSION}: follow sessions with claude_code_check.`,
  );
}

function taskOf({ forms, reply, ...head }: Task): Result {
  const asked = Object.entries(forms ?? {}).map(([key, form]) => [key, inputRequired.elicit(paramsOf(form))]);
  return {
    ...head,
    ...(forms && { inputRequests: Object.fromEntries(asked) }),
    ...(reply && { result: resultOf(reply) }),
  };
}
