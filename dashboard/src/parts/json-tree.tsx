// A stored value as a tree with types. Everything in it is text that someone else wrote: it is shown, never interpreted.
// Deep levels, long lists and long texts are folded.
import { type ReactNode, useState } from 'react';
import type { Value } from '../api/client';
import { Copy } from './copy';
import { formatBytes, formatCount, visibleText } from './format';

const OPEN_DEPTH = 2;
const CHILDREN_SHOWN = 100;
const TEXT_SHOWN = 400;

export function ValueView({ value, label }: { value: Value; label: string }) {
  const [isPrinted, setPrinted] = useState(false);
  const { json, text, isExact, isTruncated } = value;
  return (
    <div className="value" role="group" aria-label={label}>
      <div className="value-tools">
        {!isExact && (
          <span className="chip" title="The value is not plain JSON; this is its nearest form.">
            nearest JSON
          </span>
        )}
        {isTruncated && <span className="chip">truncated</span>}
        {text !== undefined && (
          <button type="button" className="button plain" onClick={() => setPrinted(!isPrinted)}>
            {isPrinted ? 'As JSON' : 'As Node prints it'}
          </button>
        )}
        <Copy text={text !== undefined && isPrinted ? text : (JSON.stringify(json, undefined, 2) ?? '')}>
          <span className="soft">copy</span>
        </Copy>
      </div>
      {isPrinted && text !== undefined ? <LongText text={text} /> : <JSONNode value={json} depth={0} />}
    </div>
  );
}

interface NodeProps {
  readonly name?: string;
  readonly value: unknown;
  readonly depth: number;
}

function JSONNode({ name, value, depth }: NodeProps) {
  if (typeof value === 'object' && value !== null) return <Branch name={name} value={value} depth={depth} />;
  return (
    <div className="json-line">
      <Name name={name} />
      <Leaf value={value} />
    </div>
  );
}

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span className="json-name">{visibleText(name)}: </span>;
}

function Leaf({ value }: { value: unknown }): ReactNode {
  switch (typeof value) {
    case 'string':
      return <LongText text={value} isQuoted />;
    case 'number':
    case 'boolean':
      return <span className={`json-${typeof value}`}>{String(value)}</span>;
    default:
      return <span className="json-null">{value === undefined ? 'undefined' : 'null'}</span>;
  }
}

function Branch({ name, value, depth }: NodeProps & { value: object }) {
  const entries = Array.isArray(value)
    ? (value as unknown[]).map((one, index) => [String(index), one] as const)
    : Object.entries(value as Record<string, unknown>);
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH && entries.length <= CHILDREN_SHOWN);
  const [shown, setShown] = useState(CHILDREN_SHOWN);
  const [open, close] = Array.isArray(value) ? (['[', ']'] as const) : (['{', '}'] as const);
  if (entries.length === 0) {
    return (
      <div className="json-line">
        <Name name={name} />
        {open}
        {close}
      </div>
    );
  }
  return (
    <div>
      <button type="button" className="json-fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span> <Name name={name} />
        <span className="soft">
          {open}
          {isOpen ? '' : `… ${formatCount(entries.length)} …${close}`}
        </span>
      </button>
      {isOpen && (
        <div className="json-children">
          {entries.slice(0, shown).map(([key, child]) => (
            <JSONNode key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {entries.length > shown && (
            <button type="button" className="button plain" onClick={() => setShown(shown + 10 * CHILDREN_SHOWN)}>
              {formatCount(entries.length - shown)} more
            </button>
          )}
        </div>
      )}
    </div>
  );
}

function LongText({ text, isQuoted = false }: { text: string; isQuoted?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole || text.length <= TEXT_SHOWN ? text : text.slice(0, TEXT_SHOWN);
  const quote = isQuoted ? '"' : '';
  return (
    <span className={isQuoted ? 'json-string' : 'mono pre'}>
      {quote}
      {visibleText(shown)}
      {shown === text ? quote : '…'}
      {text.length > TEXT_SHOWN && (
        <button type="button" className="button plain" onClick={() => setWhole(!isWhole)}>
          {isWhole ? 'fold' : `show all ${formatBytes(text.length)}`}
        </button>
      )}
    </span>
  );
}
