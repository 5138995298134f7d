// A fork beside its original: the same steps, and the first one that differs.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas, Value, Workflow } from '../../api/client';
import { steps as stepsQuery, workflow as workflowQuery } from '../../api/queries';
import { formatDuration, visibleText } from '../../parts/format';
import { Failure, Loading } from '../../parts/notice';
import { State } from '../../parts/state';

type Step = Schemas['Step'];

export function CompareTab({ workflow }: { workflow: Workflow }) {
  const { forkedFrom = '' } = workflow;
  const original = useQuery(workflowQuery(forkedFrom));
  const before = useQuery(stepsQuery(forkedFrom));
  const after = useQuery(stepsQuery(workflow.workflowID));
  const error = original.error ?? before.error ?? after.error;
  if (error) return <Failure error={error} onRetry={() => void original.refetch()} />;
  if (!original.data || !before.data || !after.data) return <Loading />;
  const pairs = pairSteps(before.data.steps, after.data.steps);
  const first = pairs.findIndex(({ isSame }) => !isSame);
  return (
    <>
      <p>
        {first < 0 ? 'All steps are the same.' : `The first difference is in step ${pairs[first]?.id}.`}
        {!isSameValue(original.data.output, workflow.output) && ' The results differ.'}
      </p>
      <div className="table-scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">
                <Link to="/workflows/$workflowID" params={{ workflowID: forkedFrom }}>
                  Original
                </Link>{' '}
                <State status={original.data.status} />
              </th>
              <th scope="col">
                Fork <State status={workflow.status} />
              </th>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {pairs.map(({ id, left, right, isSame }) => (
              <tr key={id}>
                <td className="number">{id}</td>
                <td>
                  <Side step={left} />
                </td>
                <td>
                  <Side step={right} />
                </td>
                <td>{isSame ? <span className="soft">same</span> : <span className="state error">✕ differs</span>}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Side({ step }: { step: Step | undefined }) {
  if (!step) return <span className="soft">–</span>;
  const { name, error, startedAtEpochMs: from, completedAtEpochMs: to } = step;
  return (
    <span className="row-line">
      {visibleText(name)}
      {error && <span className="state error">✕ error</span>}
      <span className="soft">{from !== undefined && to !== undefined && formatDuration(to - from)}</span>
    </span>
  );
}

export interface Pair {
  readonly id: number;
  readonly left: Step | undefined;
  readonly right: Step | undefined;
  readonly isSame: boolean;
}

export function pairSteps(before: readonly Step[], after: readonly Step[]): Pair[] {
  const left = new Map(before.map((step) => [step.functionID, step]));
  const right = new Map(after.map((step) => [step.functionID, step]));
  const ids = [...new Set([...left.keys(), ...right.keys()])].sort((a, b) => a - b);
  return ids.map((id) => ({
    id,
    left: left.get(id),
    right: right.get(id),
    isSame: isSame(left.get(id), right.get(id)),
  }));
}

function isSame(left: Step | undefined, right: Step | undefined): boolean {
  return (
    left?.name === right?.name && isSameValue(left?.output, right?.output) && isSameValue(left?.error, right?.error)
  );
}

function isSameValue(left: Value | undefined, right: Value | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}
