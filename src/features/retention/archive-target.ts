// What an archive has to do. There are two: `file-archive.ts` and `s3-archive.ts`.

/** Where archived workflows are kept. The objects never change: one that is written again has the same content. */
export interface Archive {
  /** Resolves when the object is stored safely. */
  write(name: string, content: Uint8Array): Promise<void>;
  /** The content of an object; undefined if there is none. */
  read(name: string): Promise<Uint8Array | undefined>;
}
