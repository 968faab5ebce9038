/**
 * Plugin of oxlint with the rule `comments/first-word`. Refuses comments that begin without a subject, with `Of` or `Whether`,
 * because a reader then has to look for the subject in the code below.
 */

/** First words refused, in lower case; `the same` is the one pair. */
const REFUSED = new Set(
  "of,what,whether,how,those,these,the same,who,whose,whom,which,that,where,it,its,one,as".split(","),
);

/** Comments for programs, not for readers. */
const DIRECTIVE = /^(?:eslint|oxlint|prettier|v8|@ts-|@vitest|#|\/ <reference)/;

const MESSAGE =
  "A comment begins with a verb or with the noun of the thing, not with `{{word}}`: docs/glossary.md names the things.";

/** Joins consecutive `//` lines without code, because they are read as one comment. */
function joined(comments, lines) {
  const blocks = [];
  for (const comment of comments) {
    const { start, end } = comment.loc;
    const isWholeLine = comment.type === "Line" && lines[start.line - 1].slice(0, start.column).trim() === "";
    const last = blocks.at(-1);
    if (isWholeLine && last?.isWholeLine && last.endLine === start.line - 1) last.endLine = end.line;
    else blocks.push({ comment, isWholeLine, endLine: end.line });
  }
  return blocks.map(({ comment }) => comment);
}

/** First word of `text` in lower case, `the same` as a pair. Returns a backtick if an identifier comes first. */
function firstWord(text) {
  const [first = "", second = ""] = text.match(/`|[A-Za-z']+/g) ?? [];
  const word = first.toLowerCase();
  return word === "the" && second.toLowerCase() === "same" ? "the same" : word;
}

const firstWordRule = {
  create: (context) => ({
    Program() {
      const { lines } = context.sourceCode;
      for (const comment of joined(context.sourceCode.getAllComments(), lines)) {
        if (DIRECTIVE.test(comment.value.trim())) continue;
        const word = firstWord(comment.value);
        if (REFUSED.has(word)) context.report({ loc: comment.loc, message: MESSAGE.replace("{{word}}", word) });
      }
    },
  }),
};

// oxlint takes a plugin from the default export.
export default { meta: { name: "comments" }, rules: { "first-word": firstWordRule } };
