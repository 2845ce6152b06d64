/**
 * Marks an assertion whose failure means lost, changed or invented data, or a broken invariant: `expect(lost, ABOUT_DATA)`.
 * `./dev test` never retries a test that failed with it: data loss in one of many runs is still data loss.
 */
export const ABOUT_DATA = '[about data]';
