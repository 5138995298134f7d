// What grows with backlogs, processes and histories: claims, commits in flight, processes, idle engines, launches, notifications,
// WAL, replay.
// `npm run bench -- scale claims crowd` chooses parts.
import { openDatabases } from './engine/databases.js';
import { printClaims } from './scale/claims.js';
import { printCrowd } from './scale/crowd.js';
import { printCommits } from './scale/commits.js';
import { printIdle } from './scale/idle.js';
import { printLaunch } from './scale/launch.js';
import { printProcesses } from './scale/processes.js';
import { printReplay } from './scale/replay.js';
import { printWal } from './scale/wal.js';

export const SCALE_PARTS = {
  claims: printClaims,
  commits: printCommits,
  crowd: printCrowd,
  idle: printIdle,
  launch: printLaunch,
  processes: printProcesses,
  replay: printReplay,
  wal: printWal,
} as const;

export async function benchScale(parts: readonly string[]): Promise<void> {
  const databases = await openDatabases();
  try {
    for (const [name, print] of Object.entries(SCALE_PARTS)) {
      if (parts.length === 0 || parts.includes(name)) await print(databases);
    }
  } finally {
    await databases.close();
  }
}
