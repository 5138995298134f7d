// One row of the timeline: its name, its bar, the attempts that failed, and when exactly.
import { Link } from '@tanstack/react-router';
import { formatDuration, formatTime, visibleText } from '../../parts/format';
import type { TimelineRow } from './rows';
import { percentOf, type View } from './scale';

interface TimelineBarProps {
  readonly row: TimelineRow;
  readonly view: View;
  /** Where bars end that go on. */
  readonly end: number;
  readonly top: number;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}

export function TimelineBar({ row, view, end, top, isOpen, onOpen }: TimelineBarProps) {
  const to = row.to ?? end;
  const left = Math.max(-1, percentOf(row.from, view));
  const right = Math.min(101, percentOf(to, view));
  const isVisible = right >= 0 && left <= 100;
  const duration = formatDuration(to - row.from);
  const title = `${visibleText(row.label)}: ${formatTime(row.from)}, ${duration}${row.to === undefined ? ' so far' : ''}`;
  return (
    <div className={`timeline-row ${isOpen ? 'open' : ''}`} style={{ transform: `translateY(${top}px)` }}>
      <span className="timeline-label">
        <button type="button" className="ellipsis" aria-expanded={isOpen} title={title} onClick={onOpen}>
          {row.kind === 'child' ? '└ ' : ''}
          {visibleText(row.label)}
        </button>
        {row.childID !== undefined && (
          <Link to="/workflows/$workflowID" params={{ workflowID: row.childID }} title={visibleText(row.childID)}>
            open
          </Link>
        )}
      </span>
      <span className="timeline-plot" onClick={onOpen} title={title}>
        {isVisible && (
          <span
            className={`bar ${row.kind} ${row.tone}`}
            style={{ left: `${left}%`, width: `max(3px, ${Math.max(0, right - left)}%)` }}
          />
        )}
        {row.ticks.map(({ at, attempt, error }) => (
          <span
            key={attempt}
            className="attempt"
            style={{ left: `${percentOf(at, view)}%` }}
            title={`Attempt ${attempt} failed: ${visibleText(error)}`}
          />
        ))}
        {isVisible && (
          <span className={`bar-note ${right > 80 ? 'before' : ''}`} style={{ left: `${right > 80 ? left : right}%` }}>
            {duration}
            {row.ticks.length > 0 && `, ${row.ticks.length + 1} attempts`}
          </span>
        )}
      </span>
    </div>
  );
}
