// How a client performs the verbs of `Management`: at once, without recording them.
import type { ManagementPerformer } from '../../operator/management.js';
import type { Operator } from '../../operator/operator.js';
import type { RecordedVerb } from '../../operator/performer.js';
import { queueOf, type WorkflowQueue } from '../library/workflow-queue.js';
import type { QueueRecord } from '../../features/queue/queue.js';
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
