// The dashboard while a real run goes on: it follows, says when the server is gone,
// and comes back when that does.
import type { ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { figureText } from '../../src/text/format';
import { chart, Chromium, readAt } from '../browser/browser';
import { ended, Folder, images, info, records, start } from './polyattn';

const folder = new Folder();
const children: ChildProcess[] = [];
let chromium: Chromium;

beforeAll(async () => {
  chromium = await Chromium.start();
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await ended(child);
  }
});
afterAll(async () => {
  await chromium?.stop();
  folder.remove();
});

async function serve(port = '0'): Promise<{ server: ChildProcess; url: string }> {
  const server = start('dashboard', folder.path, '--port', port);
  children.push(server);
  const lines = createInterface({ input: server.stdout as NodeJS.ReadableStream });
  const url = await new Promise<string>((done, fail) => {
    lines.once('line', done);
    server.once('exit', (code) => fail(new Error(`the dashboard ended with ${code}`)));
  });
  return { server, url };
}

function train(name: string, steps: number): ChildProcess {
  const child = start('train', ...images(steps), '--out', folder.at(name));
  child.stdout?.resume();
  children.push(child);
  return child;
}

// The row of a run in the list.
function rowOf(page: Page, name: string) {
  return page.locator('#runs tbody tr').filter({ hasText: name });
}

async function stepsOf(page: Page, name: string): Promise<number> {
  const text = (await rowOf(page, name).textContent()) ?? '';
  return Number(/([\d\u202f]+) of [\d\u202f]+/.exec(text)?.[1].replaceAll('\u202f', ''));
}

// Waits until more steps are shown than these.
async function growth(page: Page, name: string, steps: number): Promise<number> {
  for (;;) {
    const now = await stepsOf(page, name);
    if (now > steps) return now;
    await page.waitForTimeout(100);
  }
}

it('follows a run, from its first record to its last', async () => {
  const { url } = await serve();
  const { page } = await chromium.newPage();
  await page.goto(url);
  await page.waitForSelector('.banner[data-state=open]');
  // Longer than anybody waits: it goes on until it is told to stop.
  const child = train('watched', 1_000_000);
  await rowOf(page, 'watched').waitFor();
  const first = await growth(page, 'watched', 0);
  const second = await growth(page, 'watched', first);
  await growth(page, 'watched', second);
  expect(await rowOf(page, 'watched').textContent()).toContain('running');
  child.kill('SIGTERM');
  await ended(child);
  await rowOf(page, 'watched').filter({ hasText: 'interrupted' }).waitFor();
  const { accuracy } = info(folder.at('watched'));
  expect(await rowOf(page, 'watched').textContent()).toContain(figureText('accuracy', accuracy));
  await chart(page, 'train-loss');
  const last = records(folder.at('watched'), 'train').at(-1);
  expect(await readAt(page, 'train-loss', 'End')).toContain(`${last?.loss}`.slice(0, 4));
  await page.context().close();
});

it('says that the server is gone, and comes back with what has happened since', async () => {
  const { server, url } = await serve();
  const { page } = await chromium.newPage();
  await page.goto(url);
  await rowOf(page, 'watched').waitFor();
  server.kill('SIGKILL');
  await page.waitForSelector('.banner[data-state=lost]');
  expect(await page.locator('.banner').textContent()).toContain('lost');
  expect(await rowOf(page, 'watched').count()).toBe(1);
  await ended(train('meanwhile', 40));
  await serve(new URL(url).port);
  await page.waitForSelector('.banner[data-state=open]');
  await rowOf(page, 'meanwhile').filter({ hasText: 'finished' }).waitFor();
  await page.context().close();
});

it('serves this machine alone, and nothing but its own paths', async () => {
  const { server, url } = await serve();
  const status = async (path: string, init: RequestInit = {}) =>
    (await fetch(new URL(path, url), init)).status;
  expect(await status('/')).toBe(200);
  expect(await status('/api/runs')).toBe(200);
  expect(await status('/..%2f..%2fetc/passwd')).toBe(404);
  expect(await status('/watched/run.json')).toBe(404);
  expect(await status('/api/report', { method: 'POST', body: 'x' })).toBe(405);
  expect(await status('/api/report', { headers: { 'sec-fetch-site': 'cross-site' } })).toBe(403);
  const runs = (await (await fetch(new URL('/api/runs', url))).json()) as { name: string }[];
  expect(runs.map((run) => run.name).sort()).toEqual(['meanwhile', 'watched']);
  server.kill('SIGTERM');
  await ended(server);
  expect(server.exitCode).toBe(0);
});
