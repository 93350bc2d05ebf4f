import type { Store } from "./index.js";

/** Keeps the position in a file and replaces it atomically. */
export class FileStore implements Store {
  constructor(file: string);
  load(): Promise<string | null>;
  save(position: string): Promise<void>;
}
