/** Where things are in the checkout. Everything that is generated and not committed is under `.cache` or `.local`. */
import { join } from 'node:path';

export const root: string = join(import.meta.dirname, '..');
/** Kept between runs, safe to delete when no local cluster runs: built binaries, images, downloads. */
export const cacheDir: string = join(root, '.cache');
/** The state of running local clusters; `./dev down` removes it. */
export const stateDir: string = join(root, '.local');
export const chartDir: string = join(root, 'charts', 'etcd-operator');
/** Logs of failed test stages, for people. Safe to delete. */
export const logsDir: string = join(cacheDir, 'logs');

/** The program of an installed npm package, to be run by this Node and not by one on the PATH. */
export const packageProgram = (name: string): string => join(root, 'node_modules', '.bin', name);
