import { MissingRequiredClientCapabilityError, type Result, type ServerContext } from "@modelcontextprotocol/server";
import { asAppError, type ReportFault } from "../../tools/errors.ts";
import { runTaskMethod, type TaskMethod } from "./methods.ts";
import type { Task } from "./task.ts";
import { openCall, roundOf } from "../tool-call.ts";
import { inputRequestsOf } from "../forms.ts";
import type { ServerOptions, TaskOptions } from "../server-options.ts";
import { toProtocolError } from "../protocol-errors.ts";
import { resultOf } from "../tool-answers.ts";
import { TASKS_EXTENSION } from "../../tools/arguments/wait-limits.ts";
import { taskTimes } from "./extension.ts";

/** Modern clients state capabilities and log level with each request. */
const NO_CLIENT_FACTS = { capabilities: undefined, clientInfo: undefined, logLevel: undefined };

/** Answers a request of the Tasks extension, open only to modern clients that declare the extension. */
export async function answerTask(
  method: TaskMethod,
  params: unknown,
  context: ServerContext,
  options: ServerOptions & { readonly tasks: TaskOptions },
): Promise<Result> {
  const { call } = openCall(context, NO_CLIENT_FACTS, {
    round: roundOf(context),
    reported: { progress: 0 },
    unattended: options.unattended,
    leaving: options.leaving,
  });
  if (!call.client.tasks) throw extensionNotDeclared();
  const report: ReportFault = (fault, cause) => options.log.error("a task failed", { fault, method, error: cause });
  try {
    const [deps, { tools }] = await Promise.all([options.deps(), options.offer()]);
    const task = await runTaskMethod(method, params, call, { ...deps, tools });
    return task ? { ...taskResult(task), ...taskTimes(options.tasks) } : {};
  } catch (error) {
    throw toProtocolError(asAppError(error, report));
  }
}

function extensionNotDeclared(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError(
    { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
    `This client does not declare the extension ${TASKS_EXTENSION}: follow sessions with claude_code_check.`,
  );
}

function taskResult({ forms, reply, ...head }: Task): Result {
  return {
    ...head,
    ...(forms && { inputRequests: inputRequestsOf(forms) }),
    ...(reply && { result: resultOf(reply) }),
  };
}
