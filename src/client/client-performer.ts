// How a client performs the verbs of `Management`: at once, without recording them.
import type { ManagementPerformer } from '../control/management/management.js';
import type { Operator } from '../control/operator.js';
import type { RecordedVerb } from '../control/performer.js';
import { queueOf, type WorkflowQueue } from '../facade/workflow-queue.js';
import type { QueueRecord } from '../model/queues.js';
import type { ClientHandle } from './client-handle.js';
import type { ClientOperator } from './client-operator.js';

export class ClientPerformer implements ManagementPerformer<WorkflowQueue> {
  constructor(readonly operator: ClientOperator) {}

  operatorFor(): ClientOperator {
    return this.operator;
  }

  perform<R>(_: RecordedVerb, body: (operator: ClientOperator, token: undefined) => Promise<R>): Promise<R> {
    return body(this.operator, undefined);
  }

  handleOf<R>(workflowID: string): ClientHandle<R> {
    return this.operator.handleOfExisting(workflowID);
  }

  queueOf(operator: Operator, record: QueueRecord): WorkflowQueue {
    return queueOf(operator, record, { isClientBound: true });
  }
}
