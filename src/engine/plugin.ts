// All that a plugin may see of the engine.
export type { FunctionName, UserFunction } from './registry.js';
export {
  type EventDispatchState,
  type PreparedWorkflow,
  Receiving,
  type ReceivingHost,
  receivingHost,
  type ServedFunction,
  serveQueue,
} from './receiving.js';
