// What retention is configured, and what it would delete now.
import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '../api/client';
import type { readRetention } from '../api/queries';
import { countOf, visibleText } from '../parts/format';
import { Failure } from '../parts/notice';
import { State } from '../parts/state';
import { Time } from '../parts/time';

export type Retention = Awaited<ReturnType<typeof readRetention>>;

export function Policy({ policy, isArchiving }: Retention) {
  const plan = useMutation({ mutationFn: readPlan });
  const rules = Object.entries(policy ?? {}).filter(([, rule]) => rule !== undefined && rule !== null);
  return (
    <section className="card panel" aria-label="Retention">
      <h2>Retention</h2>
      {policy === null ? (
        <p className="soft">None is configured: workflows are kept until someone deletes them.</p>
      ) : (
        <>
          <dl className="facts">
            {rules.map(([name, rule]) => (
              <div key={name} className="fact">
                <dt>{name}</dt>
                <dd>{visibleText(typeof rule === 'string' ? rule : JSON.stringify(rule))}</dd>
              </div>
            ))}
            <div className="fact">
              <dt>archive</dt>
              <dd>{isArchiving ? 'yes, before they are deleted' : 'no'}</dd>
            </div>
          </dl>
          <div>
            <button type="button" className="button" disabled={plan.isPending} onClick={() => plan.mutate()}>
              Show what it would delete now
            </button>
          </div>
        </>
      )}
      <Failure error={plan.error} />
      {plan.data && <Plan plan={plan.data.plan} />}
    </section>
  );
}

type Planned = Awaited<ReturnType<typeof readPlan>>['plan'];

function readPlan() {
  return unwrap(api.POST('/retention/plan', { body: {} }));
}

function Plan({ plan }: { plan: Planned }) {
  if (plan.length === 0) return <p role="status">Nothing.</p>;
  return (
    <ul className="stack" role="status">
      {plan.map(({ name, status, workflows, oldestEndedAt }) => (
        <li key={`${name} ${status}`} className="row-line">
          <State status={status} />
          <b>{visibleText(name ?? 'unnamed')}</b>
          {countOf(workflows, 'workflow')}, the oldest ended <Time at={oldestEndedAt} />
        </li>
      ))}
    </ul>
  );
}
