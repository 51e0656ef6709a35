import { describe, expect, it } from 'vitest';
import { readReport } from '../../src/model/read';
import { splitVariant, variantKeys, withVariant } from '../../src/text/variant';

describe('variants', () => {
  it('are one name with their formula, and come apart again', () => {
    expect(withVariant('x^3', '')).toBe('x^3');
    const name = withVariant('x^3', 'model.start=plain, train.lr=1');
    expect(name).toBe('x^3{model.start=plain, train.lr=1}');
    expect(splitVariant(name)).toEqual(['x^3', 'model.start=plain, train.lr=1']);
    expect(splitVariant('x^3')).toEqual(['x^3', '']);
    for (const name of ['x{', 'x{}', 'x{y}', String.raw`\href{javascript:alert(1)}{x}`]) {
      expect(splitVariant(name)).toEqual([name, '']);
    }
    expect(variantKeys([name, 'softmax'])).toEqual(['model.start', 'train.lr']);
  });

  it('tell runs, rows and searches apart', () => {
    const variant = 'model.start=plain';
    const { runs, comparisons, grids } = readReport({
      schema: 1,
      runs: [
        { task: 'sotu', activation: 'x', variant },
        { task: 'sotu', activation: 'x', variant: '' },
      ],
      comparisons: [
        { task: 'sotu', baseline: 'x', rows: [{ activation: 'x', variant }, { activation: 'x' }] },
      ],
      grids: [{ task: 'sotu', rows: [{ activation: 'x', variant }] }],
    });
    expect(runs.map((run) => run.activation)).toEqual(['x{model.start=plain}', 'x']);
    const rows = comparisons[0].rows.map((row) => row.activation);
    expect(rows).toEqual(['x{model.start=plain}', 'x']);
    expect(grids[0].rows[0].activation).toBe('x{model.start=plain}');
  });
});
