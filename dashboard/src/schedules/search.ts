// What the URL of the schedules' page holds: the schedule whose panel is open.
export interface SchedulesSearch {
  readonly schedule?: string;
}

export function readSchedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return typeof search['schedule'] === 'string' ? { schedule: search['schedule'] } : {};
}
