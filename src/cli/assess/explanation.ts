/** Why the operator does what it does: the answer of each stage of its decision. */

export interface StageAnswer {
  readonly stage: string;
  readonly asked: readonly string[];
  readonly skipped?: string;
  readonly answers: readonly { readonly rule: string; readonly message: string; readonly steps: readonly string[] }[];
}

export interface Explanation {
  /** What the rules decide now. */
  readonly decision: { readonly rule: string; readonly message: string };
  readonly stages: readonly StageAnswer[];
  /** What they were decided on, each as a sentence. */
  readonly facts: readonly string[];
  /** What the plugin could not read, or the operator alone knows. */
  readonly limits: readonly string[];
}
