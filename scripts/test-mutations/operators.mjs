// The mutation operators, on the syntax tree of a source. They change only code that runs: no types, no texts that are for
// readers (logs, errors, descriptions), and nothing where the change could make no difference.
import { isTypeOnly, linesOf, parse, walk } from "../test-coverage/source-points.mjs";

export const OPERATORS = [
  "condition negated",
  "await dropped",
  "comparison off by one",
  "statement removed",
  "constant changed",
];

const OFF_BY_ONE = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };
const LOGS = /^(?:debug|error|info|trace|warn)$/;
/** Texts that code compares or looks up; texts with a space are for people. */
const WORD = /^[\w.:/$-]+$/;

/** All faults of a file, in the order of its text: `{ operator, file, line, start, end, was, becomes }`. */
export function faultsOf(file, text) {
  const { lineAt } = linesOf(text);
  const faults = [];
  const add = (operator, { start, end }, becomes) => {
    faults.push({ operator, file, line: lineAt(start), start, end, was: text.slice(start, end), becomes });
  };
  walk(parse(text, file), (node, parents) => {
    if (isTypeOnly(node) || isLog(node)) return false;
    if (/^(?:Import|Export(?:All|Default))/.test(node.type) && node.type !== "ImportExpression") return false;
    negate(node, text, add);
    dropAwait(node, parents, add);
    if (node.type === "BinaryExpression") moveBorder(node, text, add);
    if (node.type === "ExpressionStatement" && isWorthRemoving(node)) add("statement removed", node, ";");
    if (node.type === "Literal" && !isName(node, parents[0])) change(node, add);
  });
  return faults.toSorted((a, b) => a.start - b.start || a.end - b.end);
}

function isLog({ callee, type }) {
  return type === "CallExpression" && callee.type === "MemberExpression" && LOGS.test(callee.property.name ?? "");
}

function negate({ test, type }, text, add) {
  if (!["ConditionalExpression", "IfStatement", "WhileStatement"].includes(type) || test.type === "Literal") return;
  add("condition negated", test, `!(${text.slice(test.start, test.end)})`);
}

function dropAwait({ argument, start, type }, [parent], add) {
  // The caller awaits the promise anyway.
  if (type !== "AwaitExpression" || parent.type === "ReturnStatement" || parent.type === "ArrowFunctionExpression")
    return;
  add("await dropped", { start, end: argument.start }, "");
}

function moveBorder({ left, operator, right }, text, add) {
  const other = OFF_BY_ONE[operator];
  if (other === undefined) return;
  const start = text.indexOf(operator, left.end);
  if (start < right.start) add("comparison off by one", { start, end: start + operator.length }, other);
}

/** A `super` call cannot be removed, and a removed directive has no effect. */
function isWorthRemoving({ directive, expression }) {
  const called = expression.type === "AwaitExpression" ? expression.argument : expression;
  return !directive && called.callee?.type !== "Super" && !isLog(called);
}

/** Names of fields and modules: changed ones would make another program. */
function isName(node, parent) {
  if (parent.type === "ImportExpression") return true;
  return ["MethodDefinition", "Property", "PropertyDefinition"].includes(parent.type) && parent.key === node;
}

function change(node, add) {
  const { value } = node;
  if (typeof value === "boolean") add("constant changed", node, String(!value));
  // More than double: a slightly longer time would be undetectable.
  else if (typeof value === "number") add("constant changed", node, String(value === 0 ? 1 : 2 * value + 1));
  else if (typeof value === "string" && WORD.test(value)) add("constant changed", node, JSON.stringify(`${value}-`));
}
