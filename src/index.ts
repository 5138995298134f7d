// The public names of the package.
export * as Error from './model/errors.js';
export { PortableWorkflowError } from './model/errors.js';
export { StatusString, type WorkflowStatusString } from './model/status.js';
export type { DBOSSerializer, SerializationRecipe } from './codec/serializer.js';
export type { ContextualMetadata, DLogger, StackTrace } from './base/log.js';
