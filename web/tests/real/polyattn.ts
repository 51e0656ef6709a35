// The polyattn command and real runs made by it: seconds of training each, on real
// data. POLYATTN names the executable.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export type Json = Record<string, any>;

const root = new URL('../../../', import.meta.url);
const binary = process.env.POLYATTN ?? fileURLToPath(new URL('build/release/polyattn', root));
if (!existsSync(binary))
  throw new Error(`there is no ${binary}: build polyattn with torch, or name it in POLYATTN`);

const env = { ...process.env, OMP_WAIT_POLICY: 'passive' };

export interface Printed {
  stdout: string;
  stderr: string;
}

export function polyattn(...words: string[]): Promise<Printed> {
  return promisify(execFile)(binary, words, { env, maxBuffer: 1 << 28 });
}

export function start(...words: string[]): ChildProcess {
  return spawn(binary, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
}

export function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => child.once('exit', () => done()));
}

export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'polyattn-real-'));

  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function settings(values: Record<string, string | number>): string[] {
  return Object.entries(values).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
}

// Models so small that a step takes a few milliseconds.
const small = { 'model.dim': 16, 'model.heads': 2, 'model.depth': 2, 'model.mlp': 32 };
const often = { 'record.every': 2, 'record.norms': 10, 'record.evaluate': 30 };

export function images(steps: number, more: Record<string, string | number> = {}): string[] {
  const values = { ...small, ...often, 'model.patch': 7, 'train.batch': 16, 'train.steps': steps };
  return ['--task', 'fashion-mnist', '--threads', '1', ...settings({ ...values, ...more })];
}

export function texts(steps: number): string[] {
  const path = fileURLToPath(new URL('docs/theory.md', root));
  const values = { ...small, ...often, 'task.path': path, 'task.context': 32, 'train.batch': 8 };
  return ['--task', 'text', '--threads', '1', ...settings({ ...values, 'train.steps': steps })];
}

export function info(run: string): Json {
  return JSON.parse(readFileSync(join(run, 'run.json'), 'utf8')) as Json;
}

export function records(run: string, kind: string): Json[] {
  const lines = readFileSync(join(run, 'metrics.jsonl'), 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Json).filter((record) => record.kind === kind);
}

export function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
