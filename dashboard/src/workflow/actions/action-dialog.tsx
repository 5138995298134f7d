// The dialogs of a workflow's actions: what each asks for, and what it calls.
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { api, unwrap, type Workflow } from '../../api/client';
import { keys } from '../../api/queries';
import { Dialog } from '../../parts/dialog';
import { parseJSON } from '../../parts/json-text';

export type ActionName =
  'cancel' | 'resume' | 'fork' | 'restart' | 'rewind' | 'delete' | 'message' | 'priority' | 'delay' | 'attributes';

type FieldKind = 'text' | 'number' | 'check' | 'json';

interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind: FieldKind;
  readonly hint?: string;
  readonly isRequired?: boolean;
}

type Values = Readonly<Record<string, string | boolean>>;

interface Action {
  readonly title: string;
  readonly button: string;
  readonly about: string;
  readonly fields: readonly Field[];
  readonly isDangerous?: boolean;
  /** Resolves to the workflow to show afterwards; null leads to the list. */
  readonly perform: (workflowID: string, values: Values) => Promise<string | null | undefined>;
}

const REASON: Field = { name: 'reason', label: 'Reason, kept in the history', kind: 'text' };
const VERSION: Field = { name: 'version', label: 'Application version', kind: 'text', hint: 'the same' };
const STEP: Field = { name: 'step', label: 'First step that runs again', kind: 'number', isRequired: true };

const at = (workflowID: string) => ({ path: { workflowID } });
const textOf = (value: string | boolean | undefined): string => (typeof value === 'string' ? value.trim() : '');

/** Only what was filled in. */
function given<K extends string>(key: K, value: string | boolean | undefined): { [P in K]?: string } {
  const text = textOf(value);
  return (text === '' ? {} : { [key]: text }) as { [P in K]?: string };
}

async function fork(workflowID: string, startStep: number, { version, newID, reason }: Values): Promise<string> {
  const body = {
    startStep,
    ...given('applicationVersion', version),
    ...given('newWorkflowID', newID),
    ...given('reason', reason),
  };
  return (await unwrap(api.POST('/workflows/{workflowID}/fork', { params: at(workflowID), body }))).workflowID;
}

const ACTIONS: Readonly<Record<ActionName, Action>> = {
  cancel: {
    title: 'Cancel',
    button: 'Cancel the workflow',
    about: 'It stops at its next step. You can resume it later.',
    fields: [{ name: 'children', label: 'Cancel its children too', kind: 'check' }, REASON],
    isDangerous: true,
    async perform(workflowID, { children, reason }) {
      const body = { cancelChildren: children === true, ...given('reason', reason) };
      await unwrap(api.POST('/workflows/{workflowID}/cancel', { params: at(workflowID), body }));
      return workflowID;
    },
  },
  resume: {
    title: 'Resume',
    button: 'Resume',
    about: 'It continues after its last checkpoint.',
    fields: [{ name: 'queue', label: 'Queue', kind: 'text', hint: 'the internal queue' }, REASON],
    async perform(workflowID, { queue, reason }) {
      const body = { ...given('queueName', queue), ...given('reason', reason) };
      await unwrap(api.POST('/workflows/{workflowID}/resume', { params: at(workflowID), body }));
      return workflowID;
    },
  },
  fork: {
    title: 'Fork',
    button: 'Fork',
    about: 'Starts a copy. It keeps the outcomes of all steps before the one you choose.',
    fields: [STEP, VERSION, { name: 'newID', label: 'ID of the copy', kind: 'text', hint: 'a new one' }, REASON],
    perform: (workflowID, values) => fork(workflowID, Number(values['step']), values),
  },
  restart: {
    title: 'Restart',
    button: 'Restart',
    about: 'Starts a copy with the same input from the beginning. The original stays.',
    fields: [VERSION, REASON],
    perform: (workflowID, values) => fork(workflowID, 0, values),
  },
  rewind: {
    title: 'Rewind',
    button: 'Rewind',
    about: 'Runs it again under its own ID. What it did from that step on moves to its history.',
    fields: [STEP, VERSION, REASON],
    isDangerous: true,
    async perform(workflowID, { step, version, reason }) {
      const body = {
        startStep: Number(step),
        ...given('applicationVersion', version),
        ...given('reason', reason),
      };
      await unwrap(api.POST('/workflows/{workflowID}/rewind', { params: at(workflowID), body }));
      return workflowID;
    },
  },
  delete: {
    title: 'Delete',
    button: 'Delete',
    about: 'It is deleted with all its data, running or not. This cannot be undone.',
    fields: [{ name: 'children', label: 'Delete its children too', kind: 'check' }],
    isDangerous: true,
    async perform(workflowID, { children }) {
      const params = { ...at(workflowID), query: { deleteChildren: children === true } };
      await unwrap(api.DELETE('/workflows/{workflowID}', { params }));
      return null;
    },
  },
  message: {
    title: 'Send a message to',
    button: 'Send',
    about: 'It is received once, by a recv on the same topic.',
    fields: [
      { name: 'topic', label: 'Topic', kind: 'text', hint: 'none' },
      { name: 'message', label: 'Message, as JSON', kind: 'json', isRequired: true, hint: '{"approved": true}' },
    ],
    async perform(workflowID, { topic, message }) {
      const body = { message: parseJSON(textOf(message)), ...given('topic', topic) };
      await unwrap(api.POST('/workflows/{workflowID}/messages', { params: at(workflowID), body }));
      return undefined;
    },
  },
  priority: {
    title: 'Set the priority of',
    button: 'Set',
    about: 'Lower numbers run first; 0 comes before all. It counts on queues with priorities.',
    fields: [{ name: 'priority', label: 'Priority', kind: 'number', isRequired: true }, REASON],
    async perform(workflowID, { priority, reason }) {
      const body = { priority: Number(priority), ...given('reason', reason) };
      await unwrap(api.PUT('/workflows/{workflowID}/priority', { params: at(workflowID), body }));
      return workflowID;
    },
  },
  delay: {
    title: 'Set the delay of',
    button: 'Set',
    about: 'It starts that many seconds from now at the earliest. 0 lets it start at once.',
    fields: [{ name: 'seconds', label: 'Seconds', kind: 'number', isRequired: true }, REASON],
    async perform(workflowID, { seconds, reason }) {
      const body = { delaySeconds: Number(seconds), ...given('reason', reason) };
      await unwrap(api.PUT('/workflows/{workflowID}/delay', { params: at(workflowID), body }));
      return workflowID;
    },
  },
  attributes: {
    title: 'Edit attributes of',
    button: 'Save',
    about: 'A JSON object. Attributes that you leave out stay; null removes one.',
    fields: [{ name: 'attributes', label: 'Attributes', kind: 'json', isRequired: true }],
    async perform(workflowID, { attributes }) {
      const body = { attributes: parseJSON(textOf(attributes)) as Record<string, never> };
      await unwrap(api.PATCH('/workflows/{workflowID}/attributes', { params: at(workflowID), body }));
      return workflowID;
    },
  },
};

interface ActionDialogProps {
  readonly action: ActionName;
  readonly workflow: Workflow;
  /** What the fields hold at first. */
  readonly initial?: Values;
  readonly onClose: () => void;
}

export function ActionDialog({ action: name, workflow, initial = {}, onClose }: ActionDialogProps) {
  const { title, button, about, fields, isDangerous = false, perform } = ACTIONS[name];
  const client = useQueryClient();
  const navigate = useNavigate();
  const [values, setValues] = useState<Values>(() => ({ ...defaultsOf(name, workflow), ...initial }));
  const isMissing = fields.some(({ name: field, isRequired }) => isRequired && textOf(values[field]) === '');
  const submit = async (): Promise<void> => {
    const next = await perform(workflow.workflowID, values);
    void client.invalidateQueries({ queryKey: keys.workflow(workflow.workflowID) });
    void client.invalidateQueries({ queryKey: keys.lists });
    if (next === null) await navigate({ to: '/workflows' });
    else if (next !== undefined && next !== workflow.workflowID) {
      await navigate({ to: '/workflows/$workflowID', params: { workflowID: next } });
    }
  };
  return (
    <Dialog
      title={`${title} ${workflow.workflowName} ${workflow.workflowID}`}
      action={button}
      isDangerous={isDangerous}
      isDisabled={isMissing}
      onSubmit={submit}
      onClose={onClose}
    >
      <p className="soft">{about}</p>
      {fields.map((field) => (
        <FieldView
          key={field.name}
          field={field}
          value={values[field.name]}
          onChange={(value) => setValues({ ...values, [field.name]: value })}
        />
      ))}
    </Dialog>
  );
}

function defaultsOf(name: ActionName, { attributes, priority }: Workflow): Values {
  if (name === 'attributes') return { attributes: JSON.stringify(attributes ?? {}, undefined, 2) };
  if (name === 'priority') return { priority: String(priority) };
  return name === 'fork' || name === 'rewind' ? { step: '0' } : {};
}

interface FieldViewProps {
  readonly field: Field;
  readonly value: string | boolean | undefined;
  readonly onChange: (value: string | boolean) => void;
}

function FieldView({ field: { label, kind, hint, isRequired }, value, onChange }: FieldViewProps): ReactNode {
  if (kind === 'check') {
    return (
      <label className="check">
        <input type="checkbox" checked={value === true} onChange={({ target }) => onChange(target.checked)} />
        {label}
      </label>
    );
  }
  const shared = { className: 'field', placeholder: hint, required: isRequired === true, value: textValue(value) };
  return (
    <label className="line">
      {label}
      {kind === 'json' ? (
        <textarea {...shared} spellCheck={false} onChange={({ target }) => onChange(target.value)} />
      ) : (
        <input
          {...shared}
          type={kind}
          min={kind === 'number' ? 0 : undefined}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </label>
  );
}

function textValue(value: string | boolean | undefined): string {
  return typeof value === 'string' ? value : '';
}
