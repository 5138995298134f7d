// The next day on a strip: when each schedule fires, so that crowds and gaps are seen at once.
import { useQueries } from '@tanstack/react-query';
import { nextRuns } from '../api/queries';
import { formatTime, visibleText } from '../parts/format';
import { useNow } from '../parts/time';
import type { Schedule } from './schedules-page';

const HOURS = 24;
const SPAN_MS = HOURS * 3_600_000;
const ROWS_MAX = 12;
/** More than the strip has room for. */
const RUNS = 150;

export function CalendarStrip({ schedules }: { schedules: readonly Schedule[] }) {
  const now = useNow();
  const shown = schedules.filter(({ status }) => status === 'ACTIVE').slice(0, ROWS_MAX);
  const answers = useQueries({ queries: shown.map(({ scheduleName }) => nextRuns(scheduleName, RUNS)) });
  if (shown.length === 0) return null;
  return (
    <section className="card strip" aria-label="The next 24 hours">
      <div className="strip-hours">
        {Array.from({ length: HOURS / 3 + 1 }, (_, index) => {
          const at = now + index * 3 * 3_600_000;
          return (
            <span key={index} style={{ left: `${(index * 300) / HOURS}%` }}>
              {index === 0 ? 'now' : new Date(at).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })}
            </span>
          );
        })}
      </div>
      {shown.map(({ scheduleName }, row) => (
        <div key={scheduleName} className="strip-row">
          <span className="ellipsis">{visibleText(scheduleName)}</span>
          <span className="strip-plot">
            {answers[row]?.data?.nextRuns
              .map((text) => Date.parse(text))
              .filter((at) => at - now < SPAN_MS)
              .map((at) => (
                <i key={at} style={{ left: `${((at - now) / SPAN_MS) * 100}%` }} title={formatTime(at)} />
              ))}
          </span>
        </div>
      ))}
    </section>
  );
}
