import { ownClaude } from "../kit/clients/calling-claude.ts";
import { describeWakes } from "../kit/clients/wakes.ts";

describeWakes(ownClaude);
