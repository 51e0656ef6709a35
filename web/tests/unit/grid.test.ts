import { describe, expect, it } from 'vitest';
import type { Grid } from '../../src/model/document';
import { readReport } from '../../src/model/read';
import { chosenSetting, gridCsv, heatRows } from '../../src/sections/grid-cells';
import { csvText } from '../../src/text/csv';
import { fixtures } from '../fixtures';

function searched(): Grid {
  return readReport(fixtures.searched()).grids[0];
}

describe('what was searched', () => {
  it('is read with its settings', () => {
    const grid = searched();
    expect(grid).toMatchObject({ figure: 'accuracy', validation: 0.1, seeds: 2 });
    expect(grid.keys).toEqual(['train.lr', 'model.norm']);
    expect(grid.rows[1].cells[4]).toMatchObject({ values: ['4e-3', 'layer'], diverged: 1 });
    expect(grid.rows[1].cells[4].figure.count).toBe(0);
  });

  it('may be absent or damaged', () => {
    expect(readReport(fixtures.small()).grids).toEqual([]);
    const { grids } = readReport({ schema: 1, grids: [7, { rows: [{ cells: [null] }] }] });
    expect(grids[0].rows).toEqual([]);
    expect(heatRows(grids[1])).toHaveLength(1);
    expect(heatRows(grids[0])).toEqual([]);
  });

  it('has a row for each setting, the best of an activation hottest', () => {
    const rows = heatRows(searched());
    expect(rows.map((row) => row.values.join(' '))).toEqual([
      '1e-3 layer',
      '1e-3 rms',
      '2e-3 layer',
      '2e-3 rms',
      '4e-3 layer',
      '4e-3 rms',
    ]);
    expect(rows[2].cells[0]).toMatchObject({ heat: 1, chosen: true });
    expect(rows[5].cells[0]?.heat).toBe(0);
    expect(rows[0].cells[1]).toMatchObject({ heat: 1, chosen: true });
    expect(rows[4].cells[1]).toMatchObject({ heat: 0, chosen: false });
    expect(rows.flatMap((row) => row.cells).filter((cell) => cell?.chosen)).toHaveLength(2);
  });

  it('says what was chosen', () => {
    const grids = [searched()];
    expect(chosenSetting(grids, 'fashion-mnist', 'softmax')).toBe(
      'train.lr=2e-3, model.norm=layer',
    );
    expect(chosenSetting(grids, 'sotu', 'softmax')).toBe('');
    expect(chosenSetting(grids, 'fashion-mnist', 'x')).toBe('');
  });

  it('is hottest where bits are fewest', () => {
    const grid: Grid = { ...searched(), figure: 'bits_per_byte' };
    expect(heatRows(grid)[5].cells[0]?.heat).toBe(1);
  });

  it('leaves out what changes nothing for an activation', () => {
    const grid = searched();
    grid.rows[0].cells.splice(1, 1);
    const rows = heatRows(grid);
    expect(rows).toHaveLength(6);
    expect(rows[1].cells[0]).toBeNull();
    expect(rows[1].cells[1]).not.toBeNull();
  });

  it('has its CSV', () => {
    const lines = csvText(gridCsv(searched())).split('\r\n');
    expect(lines[0]).toBe(
      'activation,train.lr,model.norm,validation_accuracy_mean,validation_accuracy_deviation,seeds,diverged,chosen',
    );
    expect(lines[3]).toBe('softmax,2e-3,layer,0.85,0.004,2,0,true');
    expect(lines[11]).toBe('x^3/sqrt(N),4e-3,layer,nan,nan,0,1,false');
    expect(lines).toHaveLength(14);
  });
});

describe('validation data', () => {
  it('is told from the test set', () => {
    const document = fixtures.small();
    expect(readReport(document).comparisons[0].split).toBe('test');
    document.comparisons[0].split = 'validation';
    expect(readReport(document).comparisons[0].split).toBe('validation');
  });
});
