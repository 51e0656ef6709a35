// Texts that want to be markup, and pages that have no report.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostileText, fixtures } from '../fixtures';
import { chart, Chromium, showAll, template } from './browser';

let chromium: Chromium;
beforeAll(async () => {
  chromium = await Chromium.start();
});
afterAll(() => chromium.stop());

describe('hostile texts', () => {
  it('stay texts', async () => {
    const { page, complaints } = await chromium.open('hostile');
    await chart(page, 'norm-weight');
    await page.locator('.maps').scrollIntoViewIfNeeded();
    await page.locator('.map').first().waitFor();
    await showAll(page);
    const state = await page.evaluate(() => ({
      hacked: 'hacked' in globalThis,
      polluted: Object.keys({}.constructor.prototype).length,
      images: document.querySelectorAll('img, iframe, object, a[href^="javascript"]').length,
      scripts: document.querySelectorAll('script').length,
      verdict: document.querySelector('#verdict')?.textContent,
      chips: [...document.querySelectorAll('.chip')].map((chip) => chip.textContent),
    }));
    expect(state.hacked).toBe(false);
    expect(state.polluted).toBe(0);
    expect(state.images).toBe(0);
    expect(state.scripts).toBe(2);
    expect(state.verdict).toContain(hostileText);
    expect(state.chips).toContain(`Show ${hostileText}`);
    expect(state.chips).toContain('Show __proto__');
    expect(await page.locator('.result').textContent()).toContain('\\href{javascript:alert(1)}{x}');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('could do nothing even as markup: the policy of the page forbids it', async () => {
    const { page } = await chromium.open('small');
    const ran = await page.evaluate(() => {
      document.body.insertAdjacentHTML(
        'beforeend',
        '<img src="x" onerror="globalThis.hacked = 1">',
      );
      const script = document.createElement('script');
      script.textContent = 'globalThis.hacked = 2';
      document.body.append(script);
      return new Promise((done) => setTimeout(() => done('hacked' in globalThis), 200));
    });
    expect(ran).toBe(false);
    await page.context().close();
  });
});

describe('pages without a report', () => {
  it.each([
    ['nothing was put in', null, 'There is no report in this page'],
    ['the data is cut off', JSON.stringify(fixtures.small()).slice(0, 5000), 'cannot be read'],
    ['it is no document', '{"a": 1}', 'no schema'],
    ['the schema is another', '{"schema": 7, "polyattn": "3.0<b>"}', 'schema 7'],
  ])('say so: %s', async (_name, json, message) => {
    const { page, complaints } =
      json === null ? await chromium.openHtml(template()) : await chromium.openText(json);
    const text = await page.locator('[role=alert]').textContent();
    expect(text).toContain(message);
    expect(text).toMatch(/polyattn/);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('show what is whole of a document with holes', async () => {
    const json = JSON.stringify({
      schema: 1,
      title: 'Holes',
      runs: [
        {
          name: 'a',
          task: 't',
          activation: 'x',
          state: 'running',
          train: { step: [1, 2], loss: [2, 1] },
        },
        null,
      ],
      comparisons: [{ task: 't', rows: [{}, null] }],
      theory: { claims: [{}, { rows: [{}] }] },
      bench: [{}, null],
    });
    const { page, complaints } = await chromium.openText(json);
    expect(await page.locator('h1').textContent()).toBe('Holes');
    await page.locator('#speed').scrollIntoViewIfNeeded();
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
