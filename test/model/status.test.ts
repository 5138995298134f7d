import { describe, expect, test } from 'vitest';
import { isActive, StatusString, TRANSITIONS, type WorkflowStatusString } from '../../src/model/status.js';

const STATUSES = Object.keys(StatusString) as WorkflowStatusString[];

describe('workflow states', () => {
  test('nothing leads out of SUCCESS and ERROR', () => {
    const left = Object.values(TRANSITIONS).flatMap((transition): readonly string[] => transition.from);

    expect(left).not.toContain('SUCCESS');
    expect(left).not.toContain('ERROR');
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
