// Errors about schedules.
import { DBOSError } from './errors-base.js';

/** A cron expression is malformed, or names a date that never comes. */
export class InvalidCronExpressionError extends DBOSError {
  static override readonly code = 'INVALID_CRON_EXPRESSION';
  override readonly name = 'InvalidCronExpressionError';
  override readonly code = InvalidCronExpressionError.code;

  constructor(
    readonly expression: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(`${reason} The cron expression is "${expression}".`, 1, options);
  }
}

/** A time zone has no name that this runtime knows. */
export class InvalidTimeZoneError extends DBOSError {
  static override readonly code = 'INVALID_TIME_ZONE';
  override readonly name = 'InvalidTimeZoneError';
  override readonly code = InvalidTimeZoneError.code;

  constructor(
    readonly timeZone: string,
    options?: ErrorOptions,
  ) {
    super(
      `Invalid timezone: '${timeZone}'. Use an IANA name such as "Europe/Berlin", or none at all for UTC.`,
      1,
      options,
    );
  }
}

/** No schedule has this name. */
export class ScheduleNotFoundError extends DBOSError {
  static override readonly code = 'SCHEDULE_NOT_FOUND';
  override readonly name = 'ScheduleNotFoundError';
  override readonly code = ScheduleNotFoundError.code;

  constructor(
    readonly scheduleName: string,
    options?: ErrorOptions,
  ) {
    super(`Schedule "${scheduleName}" not found. DBOS.listSchedules shows those that exist.`, 1, options);
  }
}

/** The name of a new schedule is taken. */
export class ScheduleExistsError extends DBOSError {
  static override readonly code = 'SCHEDULE_EXISTS';
  override readonly name = 'ScheduleExistsError';
  override readonly code = ScheduleExistsError.code;

  constructor(
    readonly scheduleName: string,
    options?: ErrorOptions,
  ) {
    super(`Schedule "${scheduleName}" already exists. Use updateSchedule or applySchedules.`, 1, options);
  }
}
