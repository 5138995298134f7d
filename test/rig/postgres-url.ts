// Asks the process that runs the tests for the Postgres server that they share.
import { inject } from 'vitest';

let url: Promise<string> | undefined;

/** URL of the server's maintenance database. The first call of the test run starts the server. */
export function postgresURL(): Promise<string> {
  return (url ??= request());
}

async function request(): Promise<string> {
  const response = await fetch(inject('postgresRequestURL'));
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
