// The page as it is sent: drawn, read and used.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { duration, figureText, significant } from '../../src/text/format';
import { fixtures } from '../fixtures';
import { chart, Chromium, downloadText, readAt } from './browser';

let chromium: Chromium;
beforeAll(async () => {
  chromium = await Chromium.start();
});
afterAll(() => chromium.stop());

describe('every fixture', () => {
  it.each(Object.keys(fixtures))('%s is drawn without a complaint', async (name) => {
    const { page, complaints, document } = await chromium.open(name);
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    for (let y = 0; y < height; y += 800) {
      await page.evaluate((top) => window.scrollTo(0, top), y);
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
    }
    expect(await page.locator('h1').textContent()).toBe(document.title);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});

describe('values', () => {
  it('of the table are those of the document', async () => {
    const { page, document } = await chromium.open('usual');
    const [comparison] = document.comparisons;
    const shown = await page
      .locator('table.result tbody tr')
      .evaluateAll((rows) => rows.map((row) => row.textContent ?? ''));
    expect(shown).toHaveLength(comparison.rows.length);
    const means = comparison.rows
      .map((row: any) => row.figure.mean)
      .sort((a: number, b: number) => b - a);
    means.forEach((mean: number, i: number) =>
      expect(shown[i]).toContain(figureText('accuracy', mean)),
    );
    for (const row of comparison.rows) {
      const line = shown.find(
        (text) =>
          text.includes(
            `${figureText('accuracy', row.figure.mean)} ± ${figureText('accuracy', row.figure.deviation)}`,
          ) && text.includes(significant(row.max_weight_norm)),
      );
      expect(line, row.activation).toContain(duration(row.train_seconds));
      expect(line?.includes('★'), row.activation).toBe(row.best);
      expect(line?.includes('≈'), row.activation).toBe(!row.best && row.like_best);
    }
    expect(await page.locator('#verdict').textContent()).toContain(document.verdict.slice(-30));
    expect(await page.locator('.table-foot .notes').first().textContent()).toContain(
      comparison.intervals.note,
    );
    await page.context().close();
  });

  it('under the cursor are those of the document', async () => {
    const { page, document } = await chromium.open('small');
    const last = document.runs
      .filter((run: any) => run.activation === 'softmax')
      .map((run: any) => run.train.loss.at(-1));
    const text = await readAt(page, 'train-loss', 'End');
    expect(text).toContain('step 2400');
    expect(text).toContain(`softmax ${significant((last[0] + last[1]) / 2, 4)}`);
    await page.getByRole('radio', { name: 'each' }).check();
    const single = await readAt(page, 'train-loss', 'End');
    expect(single).toContain(`softmax, seed 2 ${significant(last[1], 4)}`);
    await page.context().close();
  });

  it('under the mouse are in a table beside it', async () => {
    const { page, document } = await chromium.open('small');
    const card = await chart(page, 'accuracy');
    const box = await card.locator('.u-over').boundingBox();
    await page.mouse.move((box?.x ?? 0) + (box?.width ?? 0) - 2, (box?.y ?? 0) + 50);
    const tooltip = card.locator('.tooltip');
    await tooltip.waitFor({ state: 'visible' });
    const finals = document.runs.slice(0, 2).map((run: any) => 100 * run.eval.accuracy.at(-1));
    expect(await tooltip.textContent()).toContain(significant((finals[0] + finals[1]) / 2, 4));
    await page.context().close();
  });

  it('that are not finite, and runs that diverged, are said', async () => {
    const { page } = await chromium.open('diverged');
    const card = await chart(page, 'train-loss');
    const notes = await card.locator('.notes').textContent();
    expect(notes).toContain('1 record not finite');
    expect(notes).toContain('diverged');
    expect(await page.locator('table.result').textContent()).toContain('✕ 1 of 3');
    expect(await page.locator('.cautions').first().textContent()).toContain('flatters');
    expect(await page.locator('#runs').textContent()).toContain(
      'norm of the attention weights of layer 2: inf',
    );
    await page.context().close();
  });

  it('of a search are those of the document, and what was chosen is marked', async () => {
    const { page, document } = await chromium.open('searched');
    const rows = await page
      .locator('#search tbody tr')
      .evaluateAll((all) => all.map((row) => row.textContent ?? ''));
    expect(rows).toHaveLength(6);
    const [softmax, cubic] = document.grids[0].rows;
    rows.forEach((row, i) => {
      expect(row).toContain(figureText('accuracy', softmax.cells[i].figure.mean));
      const marks = row.split('★ chosen').length - 1;
      expect(marks).toBe(Number(i === softmax.chosen) + Number(i === cubic.chosen));
    });
    expect(rows[4]).toContain('✕ diverged');
    expect(await page.locator('table.result tbody').textContent()).toContain('train.lr=2e-3');
    await page.context().close();
  });

  it('of norms follow the choice of layer, head and scale', async () => {
    const { page, document } = await chromium.open('small');
    const head = (layer: number, index: number) =>
      document.runs
        .slice(0, 2)
        .map((run: any) => run.norms.layers[layer].heads[index].weight_max.at(-1));
    await chart(page, 'norm-weight');
    await page.locator('#norms').getByLabel('Layer', { exact: true }).selectOption({ label: '2' });
    await page.locator('#norms').getByLabel('Head', { exact: true }).selectOption({ label: '1' });
    const [a, b] = head(1, 0);
    expect(await readAt(page, 'norm-weight', 'End')).toContain(
      `softmax ${significant((a + b) / 2, 4)}`,
    );
    expect(await page.locator('#norm-weight .notes').textContent()).toContain('√N = 7');
    await page.getByRole('radio', { name: 'over √N' }).check();
    await page.waitForFunction(
      () => !document.querySelector('#norm-weight .notes')?.textContent?.includes('= 7'),
    );
    expect(await readAt(page, 'norm-weight', 'End')).toContain(
      `softmax ${significant((a + b) / 14, 4)}`,
    );
    expect(await page.locator('.cards.small .card').count()).toBe(2);
    await page.context().close();
  });

  it('of the start follow the activations that are shown', async () => {
    const { page } = await chromium.open('started');
    const panel = page.getByRole('group', { name: 'How it started' });
    expect(await panel.locator('tbody').count()).toBe(2);
    expect(await panel.textContent()).toContain('0.3 to 1 times softmax’s');
    await panel.getByText('Numbers by head').click();
    await panel.locator('details tbody').first().waitFor();
    expect(await panel.locator('details tr').count()).toBe(1 + 2 * (1 + 4));
    const { name, text } = await downloadText(page, () =>
      panel.getByRole('button', { name: /Download CSV/ }).click(),
    );
    expect(name).toBe('how-it-started.csv');
    expect(text.trimEnd().split('\r\n')).toHaveLength(1 + 4 * 4);
    await page.getByRole('button', { name: 'Show x^2/sqrt(N)' }).click();
    await panel.locator('.dots').nth(2).waitFor({ state: 'detached' });
    expect(await panel.textContent()).toContain('starts at softmax’s');
    await page.getByRole('button', { name: 'Show x^3/sqrt(N)' }).click();
    await panel.waitFor({ state: 'hidden' });
    await page.context().close();
  });

  it('that were thinned are said to be', async () => {
    const { page } = await chromium.open('many');
    const card = await chart(page, 'train-loss');
    expect(await card.locator('.notes').textContent()).toMatch(
      /thinned \(of 10\u202f000, 2000 are in this file\)/,
    );
    await page.context().close();
  });
});

describe('downloads', () => {
  it('hold the records of a chart', async () => {
    const { page, document } = await chromium.open('small');
    const card = await chart(page, 'test-loss');
    const { name, text } = await downloadText(page, () =>
      card.getByRole('button', { name: /Download CSV/ }).click(),
    );
    expect(name).toBe('test-loss.csv');
    const lines = text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('run,task,activation,seed,step,train_seconds,Test loss');
    const first = document.runs[0];
    expect(lines).toHaveLength(1 + 4 * document.runs.length);
    const cells = lines[4].split(',');
    expect(cells.slice(0, 5)).toEqual([first.name, first.task, 'softmax', '1', '2400']);
    expect(Number(cells[6])).toBe(first.eval.loss.at(-1));
    await page.context().close();
  });

  it('cannot run in a spreadsheet', async () => {
    const { page } = await chromium.open('hostile');
    const { text } = await downloadText(page, () =>
      page.getByRole('button', { name: 'Download CSV: all runs' }).click(),
    );
    expect(text).toContain('"\'=HYPERLINK(""http://x"",""y"")"');
    await page.context().close();
  });

  it('exist for the table, the maps, the theory and the speed', async () => {
    const { page } = await chromium.open('usual');
    for (const section of ['#result', '#theory', '#speed']) {
      const button = page
        .locator(section)
        .getByRole('button', { name: /Download CSV/ })
        .first();
      const { text } = await downloadText(page, () => button.click());
      expect(text.split('\r\n').length, section).toBeGreaterThan(3);
    }
    await page.locator('.maps').scrollIntoViewIfNeeded();
    const { text } = await downloadText(page, () =>
      page
        .locator('.map')
        .first()
        .getByRole('button', { name: /Download CSV/ })
        .click(),
    );
    expect(text.split('\r\n')).toHaveLength(51);
    await page.context().close();
  });
});
