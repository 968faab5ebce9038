import { Output } from "./output.tsx";

/** As it came, for those who want to know it exactly. */
export function Json({ label = "JSON", value }: { readonly label?: string; readonly value: unknown }) {
  return <Output label={label} text={JSON.stringify(value, null, 2)} />;
}
