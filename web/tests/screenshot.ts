// Pictures of a report for the documentation: npm run screenshot -- REPORT.html FOLDER
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { Chromium, drawAll } from './browser/browser';

const [report, folder] = process.argv.slice(2).filter((word) => word !== '--');
if (folder === undefined) throw new Error('usage: npm run screenshot -- REPORT.html FOLDER');

async function edge(part: Locator): Promise<{ top: number; bottom: number }> {
  return part.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return { top: top + scrollY, bottom: bottom + scrollY };
  });
}

// From the top of one part of the page to the bottom of another.
async function picture(page: Page, from: Locator, to: Locator, name: string): Promise<void> {
  const { top } = await edge(from);
  const { bottom } = await edge(to);
  const width = page.viewportSize()?.width ?? 0;
  const clip = { x: 0, y: top, width, height: bottom - top + 20 };
  await page.screenshot({ path: join(folder, name), clip, fullPage: true });
}

mkdirSync(folder, { recursive: true });
const chromium = await Chromium.start();
const viewport = { width: 1120, height: 1000 };
const { page } = await chromium.openHtml(readFileSync(report, 'utf8'), { viewport });
await drawAll(page);
await picture(page, page.locator('#result'), page.locator('table.result'), 'report-result.png');
await picture(page, page.locator('#norms'), page.locator('#norm-jacobian'), 'report-norms.png');
await picture(page, page.locator('#maps'), page.locator('.map').first(), 'report-maps.png');
await chromium.stop();
