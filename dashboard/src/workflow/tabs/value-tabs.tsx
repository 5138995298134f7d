// The input and the outcome of a workflow.
import type { Value, Workflow } from '../../api/client';
import { ValueView } from '../../parts/json-tree';
import { Empty } from '../../parts/notice';
import { isActive } from '../../parts/state';

export function InputTab({ workflow: { input } }: { workflow: Workflow }) {
  if (!input) return <Empty title="The input cannot be shown." />;
  return <Card label="Input" value={input} />;
}

export function OutputTab({ workflow }: { workflow: Workflow }) {
  const { output, error } = workflow;
  if (error) return <Card label="Error" value={error} />;
  if (output) return <Card label="Output" value={output} />;
  return <Empty title={isActive(workflow) ? 'It has not ended yet.' : 'It ended without a result.'} />;
}

function Card({ label, value }: { label: string; value: Value }) {
  return (
    <section className="card panel">
      <h2>{label}</h2>
      <ValueView label={label} value={value} />
    </section>
  );
}
