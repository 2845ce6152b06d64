/** Runs a few worlds of the simulation over sources with switches, and prints what they reach. */
import { state } from './switches.ts';

await import('../../test/sim/look.ts');
process.stdout.write(JSON.stringify({ reached: [...state.reached], asked: [...state.asked] }));
