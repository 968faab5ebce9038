// The points to cover in a file of src: its statements, functions and branches, parsed from the source itself. Several builds of
// a file (Vite's for the test process, the bundle) are counted at the same points, so that their counts add up.
import { readFileSync } from "node:fs";
import { parseAst } from "rolldown/parseAst";

const NO_CODE = new Set(["BlockStatement", "EmptyStatement", "ClassDeclaration", "FunctionDeclaration"]);
const FUNCTIONS = new Set(["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"]);
const LOOP_HEADS = new Set(["ForStatement", "ForInStatement", "ForOfStatement"]);

/**
 * Visits every node of the tree, the root included; `visit` also gets the parents, nearest first, and skips a subtree by
 * returning false.
 */
export function walk(node, visit, parents = []) {
  if (visit(node, parents) === false) return;
  const below = [node, ...parents];
  for (const [key, value] of Object.entries(node)) {
    if (key === "parent") continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child?.type === "string") walk(child, visit, below);
    }
  }
}

/** A node that type stripping removes: its content never runs. */
export function isTypeOnly(node) {
  if (node.type === "TSAsExpression" || node.type === "TSSatisfiesExpression" || node.type === "TSNonNullExpression") {
    return false;
  }
  if (node.type === "TSParameterProperty") return false;
  return [node.importKind, node.exportKind].includes("type") ? true : node.type.startsWith("TS");
}

export function parse(text, file) {
  return parseAst(text, { lang: "ts" }, file);
}

/** Start offset of each line; `lineAt` counts from 1. */
export function linesOf(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const lineAt = (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
  return { starts, lineAt };
}

function statementOf(node, [parent]) {
  if (node.type === "ArrowFunctionExpression" && node.body.type !== "BlockStatement") return node.body;
  if (node.type === "PropertyDefinition") return node.value ?? undefined;
  if (node.type === "VariableDeclaration") {
    const isHead = LOOP_HEADS.has(parent.type) && parent.body !== node;
    return isHead || node.declare || node.declarations.every(({ init }) => init === null) ? undefined : node;
  }
  return node.type.endsWith("Statement") && !NO_CODE.has(node.type) ? node : undefined;
}

const NAMED_BY = { MethodDefinition: "key", Property: "key", PropertyDefinition: "key", VariableDeclarator: "id" };

function functionOf(node, [parent]) {
  if (!FUNCTIONS.has(node.type) || node.body === null) return;
  const name = node.id?.name ?? parent[NAMED_BY[parent.type]]?.name ?? "(anonymous)";
  const within = node.body.type === "BlockStatement" && node.body.body.length > 0 ? node.body.body[0] : node.body;
  return { name, start: node.start, probe: within.start, end: node.end };
}

/** The arms of a branch; `isElse` marks the path past an `if` without `else`. */
function armsOf(node) {
  switch (node.type) {
    case "IfStatement":
      return [node.consequent, node.alternate ?? { isElse: true, of: node }];
    case "ConditionalExpression":
      return [node.consequent, node.alternate];
    case "LogicalExpression":
      return [node.right];
    case "SwitchStatement":
      return node.cases.filter(({ consequent }) => consequent.length > 0).map(({ consequent }) => consequent[0]);
    default:
      return [];
  }
}

/** A block is counted at its first statement: the map may omit its brace. */
function probeOf(arm) {
  return arm.type === "BlockStatement" && arm.body.length > 0 ? arm.body[0].start : arm.start;
}

/** All points of a file, each `{ kind, line, start, probe, end }`; `probe` is where its count is read. */
export function pointsOf(file, text = readFileSync(file, "utf8")) {
  const { lineAt } = linesOf(text);
  const points = [];
  const add = (kind, { start, end, probe = start, ...more }) => {
    points.push({ kind, line: lineAt(start), start, probe, end, ...more });
    return points.length - 1;
  };
  walk(parse(text, file), (node, parents) => {
    if (isTypeOnly(node)) return false;
    const statement = statementOf(node, parents);
    if (statement) add("statement", { start: statement.start, end: statement.end });
    const func = functionOf(node, parents);
    if (func) add("function", func);
    let taken;
    for (const [arm, part] of armsOf(node).entries()) {
      const branch = { start: node.start, branch: node.start, arm };
      if (part.isElse) add("branch", { ...branch, end: node.end, instead: taken });
      else taken = add("branch", { ...branch, probe: probeOf(part), end: part.end });
    }
  });
  return points;
}
