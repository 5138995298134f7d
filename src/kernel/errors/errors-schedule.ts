// Errors about schedules.
import { errorOf } from './errors-base.js';

/** A cron expression is malformed, or names a date that never comes. */
export class InvalidCronExpressionError extends errorOf('InvalidCronExpressionError', 'INVALID_CRON_EXPRESSION') {
  constructor(
    readonly expression: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(`${reason} The cron expression is "${expression}".`, options);
  }
}

/** A time zone has no name that this runtime knows. */
export class InvalidTimeZoneError extends errorOf('InvalidTimeZoneError', 'INVALID_TIME_ZONE') {
  constructor(
    readonly timeZone: string,
    options?: ErrorOptions,
  ) {
    super(
      `Invalid timezone: '${timeZone}'. Use an IANA name such as "Europe/Berlin", or none at all for UTC.`,
      options,
    );
  }
}

/** No schedule has this name. */
export class ScheduleNotFoundError extends errorOf('ScheduleNotFoundError', 'SCHEDULE_NOT_FOUND') {
  constructor(
    readonly scheduleName: string,
    options?: ErrorOptions,
  ) {
    super(`Schedule "${scheduleName}" not found. DBOS.listSchedules shows those that exist.`, options);
  }
}

/** The name of a new schedule is taken. */
export class ScheduleExistsError extends errorOf('ScheduleExistsError', 'SCHEDULE_EXISTS') {
  constructor(
    readonly scheduleName: string,
    options?: ErrorOptions,
  ) {
    super(`Schedule "${scheduleName}" already exists. Use updateSchedule or applySchedules.`, options);
  }
}
