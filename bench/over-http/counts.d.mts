export class Counts {
  calls: number;
  events: number;
  vanished: number;
  unknown: number;
  unreachable: string[];
  refused: Record<string, number>;
  failed: string[];
  waking: number[];
}
