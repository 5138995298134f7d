// The compiler checks links: to pages that exist, with searches that they read. This fails to compile if it does not.
import { Link } from '@tanstack/react-router';
import type { createPages } from '../src/router';

export type Pages = ReturnType<typeof createPages>;

export const LINKS = [
  <Link key="known" to="/queues" search={{ queue: 'mail' }} />,
  // @ts-expect-error There is no such page.
  <Link key="page" to="/nowhere" />,
  // @ts-expect-error The page reads no such parameter.
  <Link key="search" to="/queues" search={{ queu: 'mail' }} />,
  // @ts-expect-error The path names a workflow.
  <Link key="path" to="/workflows/$workflowID" />,
];
