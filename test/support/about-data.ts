/**
 * Marks an assertion whose failure means lost, changed or invented data, or a broken invariant: `expect(lost, ABOUT_DATA)`.
 * `./dev test` never runs a test again that failed with it, because a loss that happens once in many runs is still a loss.
 */
export const ABOUT_DATA = '[about data]';
