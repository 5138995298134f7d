// Lists the optional peers whose newest release is out of the range that package.json accepts: npm refuses to install those
// beside this package. Asks the registry, so it is not part of the checks. Fails if there are any.
//
//   npm run peers
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));

function newestOf(name) {
  return execFileSync('npm', ['view', name, 'version'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** npm itself decides what a range accepts. */
function accepts(name, range, version) {
  const query = ['view', `${name}@${range}`, 'version', '--json'];
  const found = JSON.parse(execFileSync('npm', query, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  return [found].flat().includes(version);
}

for (const [name, range] of Object.entries(peerDependencies)) {
  const newest = newestOf(name);
  const isAccepted = accepts(name, range, newest);
  if (!isAccepted) process.exitCode = 1;
  console.log(`${isAccepted ? 'ok          ' : 'OUT OF RANGE'} ${name}: newest ${newest}, accepted ${range}`);
}
