import styles from "./mark.module.css";
/** Logo of icon.svg, inlined to save a request. */
export function Mark() {
  return (
    <svg class={styles["mark"]} viewBox="0 0 16 16" aria-hidden="true">
      <rect width="16" height="16" rx="4" />
      <path d="M4 5l3 3-3 3M8.5 11.5H12" />
    </svg>
  );
}
