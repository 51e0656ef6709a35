// The lines that norms are held against.
import type { Reference } from '../charts/overlay';
import { chosen } from '../curves/metrics';
import type { Run } from '../model/document';
import type { View } from '../view/store';
import { integer, significant } from '../text/format';

// N of every layer, where layers differ, or of every record.
function tokenCounts({ norms }: Run, layer: View['layer']): number[] {
  const own = chosen(norms.layers, layer).map(({ tokens }) => tokens);
  const known = own.filter((tokens) => tokens !== null);
  return known.length > 0 && known.length === own.length ? known : Array.from(norms.tokens);
}

// The largest number of tokens that the norms were taken of, and whether there
// were others.
function tokensOf(runs: Run[], layer: View['layer']): { most: number; varies: boolean } {
  let most = 0;
  let least = Infinity;
  for (const run of runs) {
    for (const tokens of tokenCounts(run, layer)) {
      if (!(tokens > 0)) continue;
      most = Math.max(most, tokens);
      least = Math.min(least, tokens);
    }
  }
  return { most, varies: least < most };
}

interface Bound {
  factor: number;
  label: string;
  source: string;
}

const bounds: Record<string, Bound[]> = {
  weight: [{ factor: 1, label: '√N', source: '' }],
  jacobian: [
    { factor: 0.5, label: '√N/2', source: '' },
    { factor: 2, label: '2√N', source: ', the paper’s bound' },
  ],
};

export function references(
  quantity: string,
  runs: Run[],
  { layer, relative }: Pick<View, 'layer' | 'relative'>,
): Reference[] {
  const list = bounds[quantity] ?? [];
  const { most, varies } = tokensOf(runs, layer);
  if (most === 0) return [];
  if (relative)
    return list.map(({ factor, label, source }) => ({ value: factor, label: `${label}${source}` }));
  const where = varies ? `, N = ${integer(most)}` : '';
  return list.map(({ factor, label, source }) => {
    const value = factor * Math.sqrt(most);
    return { value, label: `${label} = ${significant(value)}${where}${source}` };
  });
}
