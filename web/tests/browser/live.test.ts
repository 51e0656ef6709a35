// Live mode, against a server that plays the dashboard.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeReport } from '../fixtures';
import { makeRun } from '../fixtures/runs';
import { chart, Chromium, readAt, template } from './browser';
import { Dashboard } from './dashboard';

const usual = {
  task: 'fashion-mnist',
  kind: 'image' as const,
  steps: 2400,
  every: 20,
  layers: 2,
  heads: 2,
  tokens: 49,
};

function early() {
  return makeReport([makeRun({ ...usual, activation: 'softmax', seed: 1, state: 'running' })]);
}

function late() {
  return makeReport([
    makeRun({ ...usual, activation: 'softmax', seed: 1 }),
    makeRun({ ...usual, activation: 'x^3/sqrt(N)', seed: 1, state: 'running' }),
  ]);
}

let chromium: Chromium;
beforeAll(async () => {
  chromium = await Chromium.start();
});
afterAll(() => chromium.stop());

it('follows runs without losing zoom or choices', async () => {
  const dashboard = new Dashboard(template(), early());
  await dashboard.start();
  const { page } = await chromium.newPage();
  await page.goto(dashboard.url);
  const banner = page.locator('.banner');
  await page.waitForSelector('.banner[data-state=open]');
  await chart(page, 'train-loss');
  expect(await page.locator('#runs').textContent()).toContain('running');
  const log = page.locator('#train-loss').getByRole('button', { name: /log y axis/ });
  await log.click();
  await page
    .locator('#train-loss')
    .getByRole('button', { name: /Zoom in/ })
    .click();
  const before = await readAt(page, 'train-loss', 'End');
  await page.locator('#runs details summary').first().click();

  dashboard.report = late();
  dashboard.announce();
  await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
  expect(await log.getAttribute('aria-pressed')).toBe('false');
  expect((await readAt(page, 'train-loss', 'End')).split(':')[0]).toBe(before.split(':')[0]);
  expect(await page.locator('#runs > details').first().getAttribute('open')).not.toBeNull();
  await page
    .locator('#train-loss')
    .getByRole('button', { name: /Reset zoom/ })
    .click();
  expect(await readAt(page, 'train-loss', 'End')).toContain('step 2400');
  expect(await banner.textContent()).toContain('Live');
  await page.context().close();
  await dashboard.stop();
});

it('fetches at most once for many announcements in a row', async () => {
  const dashboard = new Dashboard(template(), early());
  await dashboard.start();
  const { page } = await chromium.newPage();
  await page.goto(dashboard.url);
  await page.waitForSelector('.chip');
  const before = dashboard.fetched;
  dashboard.report = late();
  for (let i = 0; i < 50; ++i) dashboard.announce();
  await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
  // One for those that came before it began, and one for those that came after.
  expect(dashboard.fetched - before).toBeLessThanOrEqual(2);
  await page.context().close();
  await dashboard.stop();
});

it('says when the connection is lost, and comes back by itself', async () => {
  const dashboard = new Dashboard(template(), early());
  await dashboard.start();
  const { page } = await chromium.newPage();
  await page.goto(dashboard.url);
  await page.waitForSelector('.chip');
  await dashboard.stop();
  await page.waitForSelector('.banner[data-state=lost]');
  expect(await page.locator('.banner').textContent()).toContain('lost');
  expect(await page.locator('.chip').count()).toBe(1);
  dashboard.report = late();
  await dashboard.start();
  await page.waitForSelector('.banner[data-state=open]');
  await page.waitForFunction(() => document.querySelectorAll('.chip').length === 2);
  await page.context().close();
  await dashboard.stop();
});
