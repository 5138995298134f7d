import { describe, expect, test } from 'vitest';
import { isActive, StatusString, TRANSITIONS, type WorkflowStatusString } from '../../../src/kernel/workflow/status.js';

const STATUSES = Object.keys(StatusString) as WorkflowStatusString[];

describe('workflow states', () => {
  test('only a rewind leads out of SUCCESS and ERROR', () => {
    const leaving = Object.entries(TRANSITIONS).filter(([, { from, to }]) => {
      const states: readonly string[] = from;
      return to !== null && (states.includes('SUCCESS') || states.includes('ERROR'));
    });

    expect(leaving.map(([verb]) => verb)).toEqual(['rewind']);
  });

  test('what can be deleted at any time is collected only when it has ended', () => {
    expect([...TRANSITIONS.delete.from].sort()).toEqual(STATUSES.toSorted());
    expect([...TRANSITIONS.collect.from].sort()).toEqual(STATUSES.filter((status) => !isActive(status)).sort());
    expect(TRANSITIONS.rewind.from).toEqual(TRANSITIONS.collect.from);
    expect([...TRANSITIONS.timeOut.from].sort()).toEqual(STATUSES.filter(isActive).sort());
  });

  test('every other state can be cancelled and resumed, and only PENDING ends in an outcome', () => {
    const unfinished = STATUSES.filter((status) => status !== 'SUCCESS' && status !== 'ERROR').sort();

    expect([...TRANSITIONS.cancel.from].sort()).toEqual(unfinished);
    expect([...TRANSITIONS.resume.from].sort()).toEqual(unfinished);
    expect(TRANSITIONS.succeed.from).toEqual(['PENDING']);
    expect(TRANSITIONS.fail.from).toEqual(['PENDING']);
  });

  test('a workflow is active while it has work to do', () => {
    expect(STATUSES.filter(isActive).sort()).toEqual(['DELAYED', 'ENQUEUED', 'PENDING']);
  });
});
