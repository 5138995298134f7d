// `everstep/receiver/http`: routes that start workflows, wait for them and report on them, and signed webhooks.
export { expressRoutes, fastifyRoutes, honoRoutes, koaRoutes } from './http-frameworks.js';
export {
  type HttpAnswer,
  type HttpRequest,
  type KeyedOptions,
  type RouteRequest,
  type RunOptions,
  type StartOptions,
  type WebhookRouteOptions,
  WorkflowRoutes,
} from './http-routes.js';
export { type SignedWebhook, signWebhook, verifyWebhook, type WebhookOptions } from './webhook.js';
