/** How far work is that the operator does. */
export interface Progress {
  /** Printed when it differs from the last one. */
  readonly line: string;
  /** Absent while the work goes on. */
  readonly ended?: 'good' | 'bad';
}
