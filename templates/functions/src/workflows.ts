import { DBOS } from 'everstep';

async function reserve(item: string): Promise<string> {
  console.log(`reserving ${item}`);
  return `reservation of ${item}`;
}

async function ship(reservation: string): Promise<string> {
  console.log(`shipping the ${reservation}`);
  return `shipped the ${reservation}`;
}

/** Continues after a crash where it stopped, without repeating a step that is recorded. */
export const order = DBOS.registerWorkflow(
  async (item: string): Promise<string> => {
    const reservation = await DBOS.runStep(() => reserve(item), { name: 'reserve' });
    return DBOS.runStep(() => ship(reservation), { name: 'ship' });
  },
  { name: 'order' },
);
