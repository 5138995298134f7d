// All rows of a long timeline at once, on a canvas. A click scrolls there; the frame shows which rows are in view.
import { type MouseEvent, type RefObject, useEffect, useRef, useState } from 'react';
import type { TimelineRow } from './rows';
import { percentOf, type View } from './scale';

const HEIGHT = 56;
const COLOURS: Readonly<Record<TimelineRow['tone'], string>> = {
  running: '#3b82f6',
  waiting: '#dca23c',
  done: '#34a36b',
  error: '#e5484d',
  cancelled: '#9aa0ab',
};

interface MinimapProps {
  readonly rows: readonly TimelineRow[];
  readonly whole: View;
  readonly scroller: RefObject<HTMLDivElement | null>;
}

export function Minimap({ rows, whole, scroller }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const frame = useFrame(scroller);
  useEffect(() => {
    if (canvas.current) draw(canvas.current, rows, whole);
  });
  const scroll = ({ clientY, currentTarget }: MouseEvent<HTMLElement>): void => {
    const { top, height } = currentTarget.getBoundingClientRect();
    const element = scroller.current;
    if (!element) return;
    element.scrollTop = ((clientY - top) / height) * element.scrollHeight - element.clientHeight / 2;
  };
  return (
    <div className="minimap card" onClick={scroll} aria-hidden="true" data-testid="minimap">
      <canvas ref={canvas} height={HEIGHT} />
      <div className="minimap-frame" style={{ top: `${frame.top}%`, height: `max(3px, ${frame.height}%)` }} />
    </div>
  );
}

function useFrame(scroller: RefObject<HTMLDivElement | null>): { top: number; height: number } {
  const [frame, setFrame] = useState({ top: 0, height: 100 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const read = (): void => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      setFrame({ top: (scrollTop / scrollHeight) * 100, height: (clientHeight / scrollHeight) * 100 });
    };
    read();
    element.addEventListener('scroll', read, { passive: true });
    return () => element.removeEventListener('scroll', read);
  }, [scroller]);
  return frame;
}

function draw(canvas: HTMLCanvasElement, rows: readonly TimelineRow[], whole: View): void {
  const context = canvas.getContext('2d');
  if (!context) return;
  const width = canvas.clientWidth;
  canvas.width = width;
  context.clearRect(0, 0, width, HEIGHT);
  const line = Math.max(1, HEIGHT / rows.length);
  rows.forEach(({ from, to, tone }, index) => {
    const left = (percentOf(from, whole) / 100) * width;
    const right = (percentOf(to ?? whole.to, whole) / 100) * width;
    context.fillStyle = COLOURS[tone];
    context.fillRect(left, (index / rows.length) * HEIGHT, Math.max(1, right - left), line);
  });
}
