// With TEST_PARK_AFTER_MS, workflows are parked as soon as they wait for that long, whatever their history.
import type { TestSettings } from '../../src/faces/library/dbos.js';

/** 0, no parking, unless the environment says otherwise. */
export const parkAfterMs = Number(process.env['TEST_PARK_AFTER_MS'] ?? 0);

export const parkingSettings: TestSettings =
  parkAfterMs === 0 ? {} : { parkingPace: { sweepMs: 3, msPerOperation: 0 } };
