// The health of the database: its schema, what `everstep doctor` finds, and indexes that lists with filters may need.
import { useQuery } from '@tanstack/react-query';
import { api, type Schemas, unwrap } from '../api/client';
import { health as healthQuery } from '../api/queries';
import { formatCount, visibleText } from '../parts/format';
import { Failure, Loading } from '../parts/notice';
import { RowActions } from '../parts/row-actions';

type HealthView = Schemas['Health'];

export function Health() {
  const { data, error, refetch } = useQuery(healthQuery);
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading rows={3} />;
  const { schema, findings } = data;
  return (
    <>
      <section className="card panel" aria-label="Health">
        <h2>Health</h2>
        <p>
          {schema.due === 0 ? (
            <span className="state done">✓ schema up to date</span>
          ) : (
            <span className="state waiting">◷ {formatCount(schema.due)} migrations due: everstep migrate</span>
          )}{' '}
          <span className="soft">
            version {schema.versions.shared}, {schema.versions.everstep}
          </span>
        </p>
        {findings.length === 0 && <p className="soft">Nothing was found that needs attention.</p>}
        <ul className="stack">
          {findings.map(({ kind, subject, message }) => (
            <li key={`${subject} ${message}`}>
              <span className={`state ${kind === 'problem' ? 'error' : 'waiting'}`}>
                {kind === 'problem' ? '✕ problem' : '◆ notice'}
              </span>{' '}
              <b>{visibleText(subject)}</b> {visibleText(message)}
            </li>
          ))}
        </ul>
      </section>
      <Indexes indexes={data.indexes} />
    </>
  );
}

async function buildOrDrop({ index, isThere }: HealthView['indexes'][number]): Promise<void> {
  const options = { params: { path: { index } } };
  await (isThere ? unwrap(api.DELETE('/indexes/{index}', options)) : unwrap(api.PUT('/indexes/{index}', options)));
}

function Indexes({ indexes }: Pick<HealthView, 'indexes'>) {
  return (
    <section className="card panel" aria-label="Optional indexes">
      <h2>Optional indexes</h2>
      <p className="soft">Each makes lists with one filter fast on large tables, and every write a little slower.</p>
      <ul className="stack">
        {indexes.map((one) => (
          <li key={one.index} className="row-line">
            <span className={`state ${one.isThere ? 'done' : 'cancelled'}`}>{one.isThere ? '✓' : '⊘'}</span>
            <code>{one.index}</code>
            <span className="spread" />
            <RowActions
              subject={one.index}
              actions={[{ label: one.isThere ? 'Drop' : 'Build', act: () => buildOrDrop(one) }]}
              stale={[healthQuery.queryKey]}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}
