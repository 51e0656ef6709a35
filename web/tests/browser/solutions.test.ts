// Solutions of equations, as they are seen.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Chromium, downloadText } from './browser';

let chromium: Chromium;
beforeAll(async () => {
  chromium = await Chromium.start();
});
afterAll(() => chromium.stop());

it('solution, prediction and error of each activation are drawn, and read', async () => {
  const { page, complaints } = await chromium.open('solutions');
  await page.locator('#solutions').scrollIntoViewIfNeeded();
  const panels = page.locator('.solution');
  await expect.poll(() => panels.count()).toBe(3);
  const first = panels.first();
  expect(await first.locator('h4').allTextContents()).toEqual(['Solution', 'Prediction', 'Error']);
  const canvas = first.locator('canvas').nth(2);
  expect(await canvas.getAttribute('aria-label')).toContain('Largest error');
  const sides = await canvas.evaluate((element) => [
    (element as HTMLCanvasElement).width,
    (element as HTMLCanvasElement).height,
  ]);
  expect(sides).toEqual([101, 101]);
  await canvas.hover({ position: { x: 2, y: 2 } });
  expect(await first.locator('.readout').textContent()).toMatch(
    /^x = 0, t = (1|0\.99): solution .*, prediction .*, error/,
  );
  await page.mouse.move(0, 0);
  expect(await first.locator('.readout').textContent()).toContain('Largest error');
  const csv = await downloadText(page, () => first.locator('button.tool').click());
  expect(csv.text.split('\r\n')[0]).toBe('x,t,solution,prediction,error');
  const largest = () => first.locator('.ticks').nth(2).textContent();
  const other = () => panels.nth(1).locator('.ticks').nth(2).textContent();
  expect(await other()).not.toBe(await largest());
  await page.getByLabel('the same', { exact: true }).check({ timeout: 15_000 });
  await expect.poll(async () => (await other()) === (await largest())).toBe(true);
  expect(complaints).toEqual([]);
  await page.context().close();
});

it('errors and terms of the loss are curves', async () => {
  const { page, complaints } = await chromium.open('solutions');
  for (const id of ['relative-l2', 'relative-l1', 'loss-term-1', 'loss-term-3'])
    expect(await page.locator(`#${id}`).count(), id).toBe(1);
  expect(await page.locator('#loss-term-2').textContent()).toContain('Loss term: initial');
  expect(complaints).toEqual([]);
  await page.context().close();
});
