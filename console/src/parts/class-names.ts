/** Joins classes of a CSS module and global classes; a name missing in `styles` is global. */
export function classNames(
  styles: Readonly<Record<string, string>>,
  ...names: readonly (string | undefined)[]
): string {
  return names.flatMap((name) => (name === undefined || name === "" ? [] : (styles[name] ?? name))).join(" ");
}
