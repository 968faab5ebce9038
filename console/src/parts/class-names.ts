/** The classes of a CSS module and global ones in one attribute: names that the module does not have are global. */
export function classNames(
  styles: Readonly<Record<string, string>>,
  ...names: readonly (string | undefined)[]
): string {
  return names.flatMap((name) => (name === undefined || name === "" ? [] : (styles[name] ?? name))).join(" ");
}
