// The timeline: a row for each step, wait and child, on a common axis. Only the rows in view are in the document.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type PointerEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { useKeys } from '../../frame/keys';
import { formatDuration } from '../../parts/format';
import { useNowIf } from '../../parts/time';
import { Minimap } from './minimap';
import { TimelineBar } from './bar';
import type { Timeline } from './rows';
import { pan, percentOf, ticksOf, type View, zoom } from './scale';

const ROW_HEIGHT = 26;
const MINIMAP_ABOVE = 200;
const ZOOM_STEP = 0.7;
const DRAG_PX = 4;

interface TimelineProps {
  readonly timeline: Timeline;
  readonly openKey: string | undefined;
  readonly onOpen: (key: string | undefined) => void;
  /** What stands below when a row is open. */
  readonly panel: ReactNode;
}

export function TimelineView({ timeline, openKey, onOpen, panel }: TimelineProps) {
  const now = useNowIf(timeline.to === undefined);
  const end = timeline.to ?? Math.max(now, timeline.from + 1000);
  // A little space after the end keeps the last bar and its name visible.
  const whole = { from: timeline.from, to: end + Math.max(1, (end - timeline.from) * 0.02) };
  const [zoomed, setView] = useState<View | undefined>(undefined);
  const view = zoomed ?? whole;
  const change = (next: View): void => setView(next.to - next.from >= whole.to - whole.from ? undefined : next);
  const scroller = useRef<HTMLDivElement>(null);
  const plot = useRef<HTMLDivElement>(null);
  useWheelZoom(plot, (factor, share) => change(zoom(view, whole, factor, view.from + share * (view.to - view.from))));
  useKeys({
    '+': () => change(zoom(view, whole, ZOOM_STEP)),
    '=': () => change(zoom(view, whole, ZOOM_STEP)),
    '-': () => change(zoom(view, whole, 1 / ZOOM_STEP)),
    '0': () => setView(undefined),
    Escape: () => onOpen(undefined),
  });
  const drag = useDrag(plot, (share) => change(pan(view, whole, -share * (view.to - view.from))));
  return (
    <section className="timeline" aria-label="Timeline">
      <div className="timeline-tools">
        <span className="soft">
          {timeline.rows.length.toLocaleString('en')} rows, {formatDuration(end - timeline.from)}
        </span>
        <span className="spread" />
        <button
          type="button"
          className="button"
          aria-label="Zoom in"
          title="Zoom in (+)"
          onClick={() => change(zoom(view, whole, ZOOM_STEP))}
        >
          +
        </button>
        <button
          type="button"
          className="button"
          aria-label="Zoom out"
          title="Zoom out (-)"
          onClick={() => change(zoom(view, whole, 1 / ZOOM_STEP))}
        >
          −
        </button>
        <button type="button" className="button" title="Show all (0)" onClick={() => setView(undefined)}>
          All
        </button>
      </div>
      {timeline.rows.length > MINIMAP_ABOVE && <Minimap rows={timeline.rows} whole={whole} scroller={scroller} />}
      <div className="timeline-box card">
        <div className="timeline-axis" ref={plot} {...drag}>
          <Axis view={view} origin={timeline.from} />
        </div>
        <Rows {...{ timeline, view, scroller, openKey, onOpen, drag, end }} />
      </div>
      {panel}
    </section>
  );
}

function Axis({ view, origin }: { view: View; origin: number }) {
  return ticksOf(view, origin, 7).map((at) => (
    <span key={at} className="timeline-tick" style={{ left: `${percentOf(origin + at, view)}%` }}>
      {at === 0 ? '0' : formatDuration(at)}
    </span>
  ));
}

interface RowsProps extends Pick<TimelineProps, 'timeline' | 'openKey' | 'onOpen'> {
  readonly view: View;
  readonly end: number;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly drag: ReturnType<typeof useDrag>;
}

function Rows({ timeline: { rows, marks }, view, scroller, openKey, onOpen, drag, end }: RowsProps) {
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 10,
  });
  const index = rows.findIndex(({ key }) => key === openKey);
  const move = (by: number): void => {
    const next = Math.min(rows.length - 1, Math.max(0, index + by));
    virtual.scrollToIndex(next);
    onOpen(rows[next]?.key);
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
  return (
    <div className="timeline-scroll" ref={scroller} tabIndex={0} role="group" aria-label="Rows of the timeline">
      <div className="timeline-rows" style={{ height: Math.max(virtual.getTotalSize(), ROW_HEIGHT) }} {...drag}>
        <div className="timeline-marks">
          {marks.map(({ at, label }, place) => (
            <span key={place} className="timeline-mark" title={label} style={{ left: `${percentOf(at, view)}%` }}>
              {label}
            </span>
          ))}
        </div>
        {virtual.getVirtualItems().map(({ index: place, start }) => {
          const row = rows[place];
          return (
            row && (
              <TimelineBar
                key={row.key}
                row={row}
                view={view}
                end={end}
                top={start}
                isOpen={row.key === openKey}
                onOpen={() => onOpen(row.key === openKey ? undefined : row.key)}
              />
            )
          );
        })}
      </div>
    </div>
  );
}

/** Zooms with the wheel over the axis, and with Ctrl or Shift anywhere; without, the wheel scrolls the rows. */
function useWheelZoom(axis: RefObject<HTMLDivElement | null>, onZoom: (factor: number, share: number) => void): void {
  const latest = useRef(onZoom);
  useEffect(() => {
    latest.current = onZoom;
  });
  useEffect(() => {
    const element = axis.current;
    const box = element?.parentElement;
    if (!element || !box) return;
    const onWheel = (event: WheelEvent): void => {
      const isOverAxis = element.contains(event.target as Node);
      if (!isOverAxis && !event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const { left, width } = element.getBoundingClientRect();
      const delta = event.deltaY || event.deltaX;
      latest.current(delta > 0 ? 1 / 0.85 : 0.85, Math.min(1, Math.max(0, (event.clientX - left) / width)));
    };
    box.addEventListener('wheel', onWheel, { passive: false });
    return () => box.removeEventListener('wheel', onWheel);
  }, [axis]);
}

/** Reports each movement of a drag as a share of the plot's width. A press that does not move stays a click. */
function useDrag(plot: RefObject<HTMLDivElement | null>, onMove: (share: number) => void) {
  const last = useRef<number | undefined>(undefined);
  const stop = (): void => {
    last.current = undefined;
  };
  return {
    onPointerDown: ({ clientX }: PointerEvent<HTMLElement>) => {
      last.current = clientX;
    },
    onPointerMove: ({ clientX, currentTarget, pointerId, buttons }: PointerEvent<HTMLElement>) => {
      if (last.current === undefined || buttons === 0) return stop();
      if (!currentTarget.hasPointerCapture(pointerId)) {
        if (Math.abs(clientX - last.current) < DRAG_PX) return;
        currentTarget.setPointerCapture(pointerId);
      }
      onMove((clientX - last.current) / (plot.current?.clientWidth ?? 1));
      last.current = clientX;
    },
    onPointerUp: stop,
    onPointerCancel: stop,
  };
}
