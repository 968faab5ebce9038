import { planSuite } from "../kit/plan/suite.ts";

planSuite("stand-in");
