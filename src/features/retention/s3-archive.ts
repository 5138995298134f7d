// An archive in a bucket of S3, or of what speaks its protocol.
import { filledString, objectWith, optional, record, string } from '../../kernel/check/validation.js';
import type { Archive } from './archive-target.js';

/** What is used of an `S3` of @aws-sdk/client-s3. */
export interface S3Like {
  putObject(input: {
    readonly Bucket: string;
    readonly Key: string;
    readonly Body: Uint8Array;
    readonly ContentType: string;
  }): Promise<unknown>;
  getObject(input: {
    readonly Bucket: string;
    readonly Key: string;
  }): Promise<{ readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined }>;
}

export interface S3ArchiveOptions {
  /** What the keys of the objects begin with, such as `everstep/`. */
  readonly prefix?: string;
}

const OPTIONS = record({ prefix: optional(string()) });

/** Keeps archived workflows as objects in a bucket. `client` is an `S3` of @aws-sdk/client-s3. */
export function s3Archive(client: S3Like, bucket: string, options: S3ArchiveOptions = {}): Archive {
  objectWith('putObject', 'getObject').read(client, 'client');
  filledString.read(bucket, 'bucket');
  const { prefix = '' } = OPTIONS.read(options, 'options');
  return {
    async write(name, content) {
      const place = { Bucket: bucket, Key: `${prefix}${name}` };
      await client.putObject({ ...place, Body: content, ContentType: 'application/gzip' });
    },
    async read(name) {
      try {
        const { Body: body } = await client.getObject({ Bucket: bucket, Key: `${prefix}${name}` });
        return await body?.transformToByteArray();
      } catch (error) {
        if ((error as { name?: unknown }).name === 'NoSuchKey') return undefined;
        throw error;
      }
    },
  };
}
