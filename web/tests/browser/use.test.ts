// What a reader does with the page.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chart, Chromium, readAt, seriousViolations, showAll } from './browser';

let chromium: Chromium;
beforeAll(async () => {
  chromium = await Chromium.start();
});
afterAll(() => chromium.stop());

async function drag(page: Page, id: string, from: number, to: number): Promise<void> {
  const card = await chart(page, id);
  const box = await card.locator('.u-over').boundingBox();
  if (box === null) throw new Error(`${id} is not on the page`);
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + ((from + to) / 2) * box.width, y, { steps: 3 });
  await page.mouse.move(box.x + to * box.width, y, { steps: 3 });
  await page.mouse.up();
}

function stepOf(text: string): number {
  return Number(/step ([\d\u202f]+)/.exec(text)?.[1].replaceAll('\u202f', ''));
}

describe('zoom', () => {
  it('by dragging is shared by all charts, and a double click ends it', async () => {
    const { page, complaints } = await chromium.open('small');
    await drag(page, 'train-loss', 0.25, 0.5);
    for (const id of ['train-loss', 'gradient-norm', 'norm-weight']) {
      const first = stepOf(await readAt(page, id, 'Home'));
      const last = stepOf(await readAt(page, id, 'End'));
      expect(first, id).toBeGreaterThanOrEqual(560);
      expect(first, id).toBeLessThanOrEqual(720);
      expect(last, id).toBeLessThanOrEqual(1240);
    }
    const card = await chart(page, 'train-loss');
    await card.locator('.u-over').dblclick();
    expect(stepOf(await readAt(page, 'norm-weight', 'End'))).toBe(2400);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('by buttons and keys', async () => {
    const { page } = await chromium.open('small');
    const card = await chart(page, 'train-loss');
    const reset = card.getByRole('button', { name: /Reset zoom/ });
    expect(await reset.isDisabled()).toBe(true);
    await card.getByRole('button', { name: /Zoom in/ }).click();
    expect(await reset.isDisabled()).toBe(false);
    expect(stepOf(await readAt(page, 'train-loss', 'Home'))).toBe(600);
    await card.locator('.frame').press('0');
    expect(await reset.isDisabled()).toBe(true);
    await card.locator('.frame').press('+');
    expect(stepOf(await readAt(page, 'train-loss', 'End'))).toBe(1800);
    await card.locator('.frame').press('PageDown');
    expect(stepOf(await readAt(page, 'train-loss', 'End'))).toBe(2400);
    await page.context().close();
  });

  it('stays when activations are hidden and goes when the axis changes', async () => {
    const { page } = await chromium.open('small');
    await (await chart(page, 'train-loss')).getByRole('button', { name: /Zoom in/ }).click();
    await page.getByRole('button', { name: 'Show softmax' }).click();
    const text = await readAt(page, 'train-loss', 'End');
    expect(stepOf(text)).toBe(1800);
    expect(text).not.toContain('softmax');
    expect(await readAt(page, 'norm-weight', 'End')).not.toContain('softmax');
    await page.getByRole('radio', { name: 'training time' }).check();
    expect(await readAt(page, 'train-loss', 'End')).toMatch(/after \d/);
    expect(
      await page
        .locator('#train-loss')
        .getByRole('button', { name: /Reset zoom/ })
        .isDisabled(),
    ).toBe(true);
    await page.context().close();
  });
});

describe('toggles', () => {
  it('switch the y axis', async () => {
    const { page } = await chromium.open('small');
    const log = (await chart(page, 'train-loss')).getByRole('button', { name: /log y axis/ });
    expect(await log.getAttribute('aria-pressed')).toBe('true');
    await log.click();
    expect(await log.getAttribute('aria-pressed')).toBe('false');
    await page.context().close();
  });

  it('switch light and dark, after the system and by hand', async () => {
    const { page } = await chromium.open('small', { colorScheme: 'dark' });
    const shade = () =>
      page.evaluate(() => [
        document.documentElement.dataset.theme,
        getComputedStyle(document.body).backgroundColor,
      ]);
    const dark = await shade();
    expect(dark[0]).toBe('dark');
    await page.locator('#theme').click();
    const light = await shade();
    expect(light[0]).toBe('light');
    expect(light[1]).not.toBe(dark[1]);
    await page.emulateMedia({ colorScheme: 'light' });
    await page.locator('#theme').click();
    expect((await shade())[0]).toBe('dark');
    await page.context().close();
  });

  it('choose the task', async () => {
    const { page } = await chromium.open('mixed');
    await chart(page, 'accuracy');
    await page.getByRole('radio', { name: 'sotu' }).check();
    await chart(page, 'bits-per-byte');
    expect(await page.locator('#accuracy').count()).toBe(0);
    expect(await page.locator('.chip').count()).toBe(2);
    await page.locator('#norms').scrollIntoViewIfNeeded();
    expect(
      await page.locator('#norms').getByLabel('Head', { exact: true }).locator('option').count(),
    ).toBe(5);
    await page.context().close();
  });
});

describe('attention maps', () => {
  it('read weights, and look at the picture for every activation', async () => {
    const { page } = await chromium.open('usual');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    await page.locator('.map').first().waitFor();
    expect(await page.locator('.map').count()).toBe(7);
    const frame = page.locator('.matrix-frame').first();
    await frame.scrollIntoViewIfNeeded();
    await frame.focus();
    await frame.press('ArrowDown');
    await frame.press('ArrowRight');
    const readouts = await page.locator('.map .readout').allTextContents();
    for (const text of readouts) expect(text).toMatch(/^patch 1, 2 → patch 1, 2: weight /);
    const box = await page.locator('.picture').first().boundingBox();
    await page.mouse.move((box?.x ?? 0) + 4, (box?.y ?? 0) + 4);
    expect(await page.locator('.map .readout').first().textContent()).toMatch(
      /^patch 1, 1: weights sum to about (1|0\.99\d|1\.0\d), 0 of 49/,
    );
    const sneaker = page.getByRole('button', { name: 'Sneaker', exact: true });
    await sneaker.click();
    expect(await sneaker.getAttribute('aria-pressed')).toBe('true');
    await page.context().close();
  });

  it('know the class token', async () => {
    const { page } = await chromium.open('class');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    const frame = page.locator('.matrix-frame').first();
    await frame.focus();
    await frame.press('ArrowUp');
    expect(await page.locator('.readout').first().textContent()).toMatch(
      /^class token → class token/,
    );
    await page.context().close();
  });

  it('of windows go from one to another on the picture', async () => {
    const { page, complaints } = await chromium.open('layers');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    const readout = page.locator('.map .readout').first();
    const note = page.locator('.map > .notes').first();
    await readout.waitFor();
    expect(await note.textContent()).toContain('Window 2, 2 of stage 1, not shifted;');
    expect(await readout.textContent()).toMatch(/^patch 7, 7: .* of 16 below zero$/);
    expect(await page.getByLabel('Window', { exact: true }).locator('option').count()).toBe(5);
    // A patch of another window: nothing until it is clicked.
    const picture = page.locator('.picture').first();
    const at = async (patch: number) => {
      const width = (await picture.boundingBox())?.width ?? NaN;
      return ((patch - 0.5) * width) / 14;
    };
    await picture.hover({ position: { x: await at(10), y: await at(6) } });
    expect(await readout.textContent()).toMatch(/^patch 7, 7: /);
    await picture.click({ position: { x: await at(10), y: await at(6) } });
    await page.locator('.map > .notes').filter({ hasText: 'Window 2, 3' }).first().waitFor();
    expect(await readout.textContent()).toMatch(/^patch 6, 10: /);
    // One that was not kept stays where it is.
    await picture.click({ position: { x: await at(1), y: await at(1) } });
    expect(await note.textContent()).toContain('Window 2, 3');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('of layers that differ offer the heads and windows of each', async () => {
    const { page } = await chromium.open('layers');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    const layer = page.locator('#maps').getByLabel('Layer', { exact: true });
    const head = page.locator('#maps').getByLabel('Head', { exact: true });
    const readout = page.locator('.map .readout').first();
    await readout.waitFor();
    expect(await layer.locator('option').allTextContents()).toEqual([
      '1: window, stage 1',
      '2: window, stage 1',
      '3: channel',
      '4: class',
    ]);
    expect(await head.locator('option').count()).toBe(2);
    await layer.selectOption('2: window, stage 1');
    expect(await head.locator('option').count()).toBe(4);
    expect(await page.locator('.map > .notes').first().textContent()).toContain('shifted by 2');
    await page.getByLabel('Window', { exact: true }).selectOption('4, 4');
    // Its first tokens lie beyond the map, the last came round from the other edge.
    const frame = page.locator('.matrix-frame').first();
    await frame.focus();
    await frame.press('ArrowDown');
    expect(await readout.textContent()).toMatch(/^filling → filling: weight /);
    await layer.selectOption('3: channel');
    expect(await page.getByLabel('Window', { exact: true }).count()).toBe(0);
    expect(await readout.textContent()).toMatch(/^channel 1: .* of 12 below zero$/);
    await layer.selectOption('4: class');
    expect(await readout.textContent()).toMatch(/^class token: .* of 50 below zero$/);
    await page
      .locator('.picture')
      .first()
      .hover({ position: { x: 2, y: 2 } });
    expect(await readout.textContent()).toMatch(/^class token → patch 1, 1: weight /);
    await page.context().close();
  });

  it('of texts show the tokens', async () => {
    const { page } = await chromium.open('text');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    const tokens = page.locator('.tokens').first();
    await tokens.waitFor();
    expect(await tokens.textContent()).toBe(
      'The␣state␣of␣the␣Union␣is␣strong↵and␣<b>so</b>␣are␣we.',
    );
    await tokens.locator('span').nth(4).click();
    expect(await page.locator('.readout').first().textContent()).toContain('token 5 “s”');
    await page.context().close();
  });
});

describe('a hundred runs', () => {
  it('draw only what is seen, and can be used', async () => {
    const { page, complaints } = await chromium.open('many');
    expect(await page.locator('.uplot').count()).toBeLessThan(4);
    await drag(page, 'train-loss', 0.3, 0.4);
    const last = stepOf(await readAt(page, 'train-loss', 'End'));
    expect(last).toBeGreaterThan(70_000);
    expect(last).toBeLessThan(85_000);
    await page.getByRole('radio', { name: 'each' }).check();
    await page.getByRole('button', { name: 'Show softmax' }).click();
    expect(await readAt(page, 'train-loss', 'End')).not.toContain('softmax');
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe('everyone', () => {
  it.each([
    ['usual', 'light'],
    ['usual', 'dark'],
    ['diverged', 'light'],
    ['text', 'dark'],
    ['mixed', 'light'],
    ['linear', 'dark'],
    ['searched', 'light'],
    ['searched', 'dark'],
    ['started', 'dark'],
  ] as const)('can use %s in %s: axe finds nothing serious', async (name, colorScheme) => {
    const { page } = await chromium.open(name, { colorScheme });
    await showAll(page);
    expect(await seriousViolations(page)).toEqual([]);
    await page.context().close();
  });

  it.each(['usual', 'text', 'mixed', 'hostile', 'started'])(
    'can read %s on a phone: nothing is wider than the screen',
    async (name) => {
      const { page } = await chromium.open(name, { viewport: { width: 375, height: 700 } });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(
        375,
      );
      await page.context().close();
    },
  );

  it('can print: everything is drawn, and light', async () => {
    const { page } = await chromium.open('usual', { colorScheme: 'dark' });
    await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('light');
    const undrawn = await page
      .locator('.card')
      .evaluateAll((cards) => cards.filter((card) => card.querySelector('canvas') === null).length);
    expect(undrawn).toBe(0);
    expect(await page.locator('.map canvas').count()).toBe(14);
    await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    expect((await page.pdf()).length).toBeGreaterThan(50_000);
    await page.context().close();
  });
});
