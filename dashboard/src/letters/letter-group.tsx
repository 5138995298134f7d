// Dead letters that failed the same way, with what can be done with all of them. A group opens to its messages.
import { type ReactNode, useState } from 'react';
import { useSession } from '../api/session';
import { Confirm } from '../parts/dialog';
import { countOf, formatCount, visibleText } from '../parts/format';
import { Time } from '../parts/time';

export type LetterVerb = 'requeue' | 'archive' | 'discard';

const ABOUT: Readonly<Record<LetterVerb, string>> = {
  requeue: 'They are delivered again, from their first attempt on.',
  archive: 'They leave the lists, and are kept.',
  discard: 'They are deleted. This cannot be undone.',
};
const TITLES: Readonly<Record<LetterVerb, string>> = { requeue: 'Requeue', archive: 'Archive', discard: 'Discard' };

interface LetterGroupProps<V extends LetterVerb> {
  readonly count: number;
  /** The topic or function that the messages were for. */
  readonly target: string;
  readonly failure: string;
  readonly lastAt: number;
  readonly verbs: readonly V[];
  readonly onChange: (verb: V) => Promise<unknown>;
  /** The messages, once they are wanted. */
  readonly children: ReactNode;
}

export function LetterGroup<V extends LetterVerb>(props: LetterGroupProps<V>) {
  const { count, target, failure, lastAt, verbs, onChange, children } = props;
  const { isReadOnly } = useSession();
  const [isOpen, setOpen] = useState(false);
  const [verb, setVerb] = useState<V | undefined>(undefined);
  return (
    <section className="card panel" aria-label={`Dead letters of ${visibleText(target)}: ${visibleText(failure)}`}>
      <div className="row-line">
        <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? '▾' : '▸'} <strong>{formatCount(count)}</strong> for <strong>{visibleText(target)}</strong>:{' '}
          {visibleText(failure)}
        </button>
        <span className="soft">
          last <Time at={lastAt} />
        </span>
        <span className="spread" />
        {!isReadOnly &&
          verbs.map((one) => (
            <button
              key={one}
              type="button"
              className={`button ${one === 'discard' ? 'danger' : ''}`}
              onClick={() => setVerb(one)}
            >
              {TITLES[one]}…
            </button>
          ))}
      </div>
      {isOpen && children}
      {verb !== undefined && (
        <Confirm
          title={`${TITLES[verb]} ${countOf(count, 'dead letter')} of ${target}?`}
          action={TITLES[verb]}
          count={count}
          isDangerous={verb === 'discard'}
          onSubmit={() => onChange(verb)}
          onClose={() => setVerb(undefined)}
        >
          <p>{ABOUT[verb]}</p>
        </Confirm>
      )}
    </section>
  );
}

/** The first line of an error, which is its message. */
export function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.slice(0, 200) ?? '';
}
