import { readFile, rename, writeFile } from "node:fs/promises";

/** Keeps the position in a file and replaces it atomically. */
export class FileStore {
  constructor(file) { this.file = file; }

  async load() {
    try {
      return (await readFile(this.file, "utf8")).trim() || null;
    } catch (error) {
      if (error.code === "ENOENT") return null;
      throw error;
    }
  }

  async save(position) {
    await writeFile(`${this.file}.new`, position + "\n", { mode: 0o600 });
    await rename(`${this.file}.new`, this.file);
  }
}
