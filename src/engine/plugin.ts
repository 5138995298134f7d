// All that a plugin may see of the engine.
export type { FunctionName, UserFunction } from './registry.js';
export {
  type EventDispatchState,
  type HttpInstance,
  nowOf,
  orLate,
  type PreparedWorkflow,
  Receiving,
  type ReceivingHost,
  receivingHost,
  type ServedFunction,
  serveQueue,
  type StartedWorkflow,
} from './receiving.js';
