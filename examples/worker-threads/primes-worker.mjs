import { parentPort, workerData } from 'node:worker_threads';

const { below } = workerData;
let count = 0;
for (let candidate = 2; candidate < below; candidate += 1) {
  let isPrime = true;
  for (let divisor = 2; isPrime && divisor * divisor <= candidate; divisor += 1) {
    isPrime = candidate % divisor !== 0;
  }
  if (isPrime) count += 1;
}
parentPort.postMessage(count);
