// Routes for the dead letters of receivers. To requeue them takes the process that receives.
import { type ReceivedChangeFilter, type ReceivedFilter, ReceivedLetters } from './received-letters.js';
import {
  boolean,
  type CheckedFields,
  integer,
  nullable,
  optional,
  parseTimestamp,
  record,
  timestamp,
} from '../../kernel/check/validation.js';
import { notFound } from '../../faces/http/http/refusal.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { listOf, nonEmpty, text } from '../../faces/http/shape.js';
import { shownValue, showValue } from '../../faces/http/views/value.js';

const tag = 'Receivers';
const PAGE_MAX = 1000;

const letterView = record({
  id: text,
  functionName: text,
  receivedAt: integer(),
  error: text,
  message: shownValue,
  archivedAt: nullable(integer()),
}).named('ReceivedLetter');

const groupView = record({
  functionName: text,
  fingerprint: text,
  error: text,
  count: integer(),
  firstReceivedAt: integer(),
  lastReceivedAt: integer(),
  sampleID: text,
}).named('ReceivedGroup');

const filters = {
  functionName: optional(nonEmpty.about('The workflow function that the messages were for.')),
  fingerprint: optional(nonEmpty.about('A group of equal failures.')),
  since: optional(timestamp.about('Received at this time or later.')),
  before: optional(timestamp.about('Received before this time.')),
  archived: optional(boolean.about('Archived ones only. Defaults to false.')),
};
const changes = {
  ids: optional(listOf(nonEmpty, { min: 1 })),
  ...filters,
  all: optional(boolean.about('Needed to mean all dead letters.')),
  limit: optional(integer({ min: 1 })),
  dryRun: optional(boolean.about('Only counts.')),
};

function filterOf({ fingerprint, since, before, archived }: CheckedFields<typeof filters>): ReceivedFilter {
  return {
    ...(fingerprint !== undefined && { fingerprint }),
    ...(since !== undefined && { since: parseTimestamp(since) }),
    ...(before !== undefined && { before: parseTimestamp(before) }),
    ...(archived !== undefined && { archived }),
  };
}

function changeOf({ ids, all, limit, dryRun, ...rest }: CheckedFields<typeof changes>) {
  const isAll = all === true || rest.functionName !== undefined;
  const filter: ReceivedChangeFilter = { ...filterOf(rest), ...(ids && { ids }), ...(isAll && { all: true }) };
  return { filter, bounds: { ...(limit !== undefined && { limit }), ...(dryRun !== undefined && { dryRun }) } };
}

function view(letter: object & { readonly message: unknown; readonly archivedAt?: number }): object {
  return { ...letter, message: showValue(letter.message), archivedAt: letter.archivedAt ?? null };
}

export const RECEIVED_LETTER_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/receivers/dead-letters',
    tag,
    summary: 'Lists messages that could not become workflows, the newest first.',
    query: { ...filters, limit: optional(integer({ min: 1, max: PAGE_MAX })), cursor: optional(nonEmpty) },
    result: record({ letters: listOf(letterView), cursor: nullable(text) }),
    async handle({ operator, query: { limit, cursor, functionName, ...rest } }) {
      const page = await new ReceivedLetters(operator, functionName).list({
        ...filterOf(rest),
        ...(limit !== undefined && { limit }),
        ...(cursor !== undefined && { cursor }),
      });
      return { letters: page.letters.map(view), cursor: page.cursor ?? null };
    },
  }),
  route({
    method: 'GET',
    path: '/receivers/dead-letter-groups',
    tag,
    summary: 'Counts dead letters of receivers that failed the same way, the most frequent first.',
    query: filters,
    result: record({ groups: listOf(groupView) }),
    async handle({ operator, query: { functionName, ...rest } }) {
      return { groups: await new ReceivedLetters(operator, functionName).groups(filterOf(rest)) };
    },
  }),
  route({
    method: 'GET',
    path: '/receivers/dead-letters/{id}',
    tag,
    summary: 'Returns a dead letter of a receiver.',
    query: { functionName: filters.functionName },
    result: letterView,
    async handle({ operator, path, query: { functionName } }) {
      const letter = await new ReceivedLetters(operator, functionName).get(path['id'] ?? '');
      if (!letter) throw notFound(`There is no dead letter "${path['id']}".`);
      return view(letter);
    },
  }),
  route({
    method: 'POST',
    path: '/receivers/bulk/discard',
    tag,
    summary: 'Deletes dead letters of receivers.',
    body: record(changes),
    result: record({ discarded: integer() }),
    handle({ operator, body }) {
      const { filter, bounds } = changeOf(body);
      return new ReceivedLetters(operator, body.functionName).discard(filter, bounds);
    },
  }),
  route({
    method: 'POST',
    path: '/receivers/bulk/archive',
    tag,
    summary: 'Takes dead letters of receivers out of the lists, and keeps them.',
    body: record(changes),
    result: record({ archived: integer() }),
    handle({ operator, body }) {
      const { filter, bounds } = changeOf(body);
      return new ReceivedLetters(operator, body.functionName).archive(filter, bounds);
    },
  }),
];
