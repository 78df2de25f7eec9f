import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { SampleOptions } from '../sample-options.js';

/** The folder of invoices. */
@Injectable()
export class InvoiceFiles implements OnModuleInit {
  constructor(private readonly options: SampleOptions) {}

  /** Makes the folder, and clears away the drafts that a killed start left. */
  async onModuleInit(): Promise<void> {
    await mkdir(this.options.outputDir, { recursive: true });
    const drafts = (await readdir(this.options.outputDir)).filter((name) => name.startsWith('.INV-'));
    await Promise.all(drafts.map((name) => rm(join(this.options.outputDir, name), { force: true })));
  }

  /** Writes a file so that a reader sees the whole of it or none, whenever the process is killed. Returns its name. */
  async write(name: string, content: string): Promise<string> {
    const draft = join(this.options.outputDir, `.${name}.${randomUUID()}`);
    try {
      const file = await open(draft, 'wx');
      try {
        await file.writeFile(content);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(draft, join(this.options.outputDir, name));
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    return name;
  }

  /** Names of the invoices that are there. */
  async list(): Promise<string[]> {
    return (await readdir(this.options.outputDir)).filter((name) => name.startsWith('INV-'));
  }
}
