// The input and the outcome of a workflow.
import { apiURL, type Value, type Workflow } from '../../api/client';
import { ValueView } from '../../parts/json-tree';
import { Empty } from '../../parts/notice';
import { isActive } from '../../parts/state';

export function InputTab({ workflow: { workflowID, input } }: { workflow: Workflow }) {
  if (!input) return <Empty title="The input cannot be shown." />;
  return <Card label="Input" value={input} workflowID={workflowID} />;
}

export function OutputTab({ workflow }: { workflow: Workflow }) {
  const { workflowID, output, error } = workflow;
  if (error) return <Card label="Error" value={error} workflowID={workflowID} />;
  if (output) return <Card label="Output" value={output} workflowID={workflowID} />;
  return <Empty title={isActive(workflow) ? 'It has not ended yet.' : 'It ended without a result.'} />;
}

interface CardProps {
  readonly label: 'Input' | 'Output' | 'Error';
  readonly value: Value;
  readonly workflowID: string;
}

function Card({ label, value, workflowID }: CardProps) {
  const wholeURL = `${apiURL}/workflows/${encodeURIComponent(workflowID)}/value?of=${label.toLowerCase()}`;
  return (
    <section className="card panel">
      <h2>{label}</h2>
      {value.isTruncated && (
        <p>
          It is too large to be shown whole.{' '}
          <a href={wholeURL} download={`${label.toLowerCase()}.json`} className="button">
            Download
          </a>
        </p>
      )}
      <ValueView label={label} value={value} />
    </section>
  );
}
