import { expect, test } from 'vitest';
import type { Database } from '../../../src/database/database.js';
import { recentRowsOf } from '../../../src/features/message/recent-rows.sql.js';

test('a look after one that failed does not begin where that one would have ended', async () => {
  const row = { destination_uuid: 'w', topic: 'a' };
  const answers: (readonly object[] | Error)[] = [
    [{ last: 0 }], // The first look has no mark to begin at.
    [{ last: 1 }],
    new Error('busy'),
    [{ last: 1 }],
    [{ last: 1 }],
    [row],
  ];
  const read = async (): Promise<readonly object[] | undefined> => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const recent = recentRowsOf({ dialect: { name: 'sqlite' }, read } as unknown as Database);

  const looks = [];
  for (let look = 0; look < 4; look += 1) looks.push(await recent?.messages().catch(String));

  expect(looks).toEqual([undefined, 'Error: busy', undefined, [expect.any(String)]]);
});
