// What the interface knows about itself, and the health of the database.
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { info as infoQuery } from '../api/queries';
import { Page } from '../frame/frame';
import { visibleText } from '../parts/format';
import { Failure, Loading } from '../parts/notice';
import { Health } from './health';

export function SettingsPage(): ReactNode {
  const { data, error, refetch } = useQuery(infoQuery);
  const facts: readonly (readonly [string, string | null | undefined])[] = [
    ['Everstep', data?.version],
    ['Database', data?.database],
    ['Application', data?.applicationName],
    ['Version of this process', data?.applicationVersion],
    ['Executor of this process', data?.executorID],
  ];
  return (
    <Page title="Settings">
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading rows={4} />}
        {data && (
          <section className="card panel" aria-label="This interface">
            <h2>This interface</h2>
            <dl className="facts column">
              {facts.map(([name, value]) => (
                <div key={name} className="fact">
                  <dt>{name}</dt>
                  <dd className="mono">{visibleText(value ?? '–')}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
        <Health />
      </div>
    </Page>
  );
}
