// A fork beside its original: how many steps are the same, and those that are not.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas, Workflow } from '../../api/client';
import { comparison } from '../../api/queries';
import { formatCount, visibleText } from '../../parts/format';
import { ValueView } from '../../parts/json-tree';
import { Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';

type Difference = Schemas['HistoryDifference'];

/** While it runs, steps end without a change of the workflow's own row. */
const LIVE_MS = 3000;

export function CompareTab({ workflow }: { workflow: Workflow }) {
  const { workflowID, forkedFrom = '' } = workflow;
  const { data, error, refetch } = useQuery({
    ...comparison(forkedFrom, workflowID),
    refetchInterval: isActive(workflow) ? LIVE_MS : false,
  });
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  const { same, differences } = data;
  return (
    <>
      <p role="status">{summaryOf(same, differences)}</p>
      {differences.length > 0 && (
        <div className="table-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Step</th>
                <th scope="col">
                  <Link to="/workflows/$workflowID" params={{ workflowID: forkedFrom }}>
                    Original
                  </Link>
                </th>
                <th scope="col">Fork</th>
              </tr>
            </thead>
            <tbody>
              {differences.map(({ at, first, second }) => (
                <tr key={String(at)} className="compared">
                  <td>{String(at)}</td>
                  <td>
                    <Side event={first} />
                  </td>
                  <td>
                    <Side event={second} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

export function summaryOf(same: number, differences: readonly Difference[]): string {
  const steps = differences.filter(({ at }) => at !== 'outcome');
  const counted = `${formatCount(same)} ${same === 1 ? 'step is' : 'steps are'} the same`;
  if (differences.length === 0) return `${counted}, and so is the outcome.`;
  const first = steps.length === 0 ? '' : ` The first difference is in step ${String(steps[0]?.at)}.`;
  return `${counted}.${first}${steps.length < differences.length ? ' The outcomes differ.' : ''}`;
}

function Side({ event }: { event: Difference['first'] }) {
  if (!event) return <span className="soft">nothing yet</span>;
  const { activity_name: name } = event.details as { activity_name?: unknown };
  return (
    <>
      <span className="row-line">
        {typeof name === 'string' && <strong>{visibleText(name)}</strong>}
        <span className="soft">{visibleText(event.type)}</span>
      </span>
      {Object.entries(event.payloads ?? {}).map(([key, value]) => (
        <ValueView key={key} value={value} label={key} />
      ))}
    </>
  );
}
