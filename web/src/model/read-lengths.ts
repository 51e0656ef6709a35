// How good a language model is by length: lengths.json, as C++ writes it.
import type { LengthFigure, Lengths } from './document';
import { fields, list, number } from './values';

// NaN if the figure is not there.
function readFigure(value: unknown, at: string, figure: Lengths['figure']): LengthFigure {
  const entry = fields(value);
  return { tokens: number(entry[at]), value: number(entry[figure]) };
}

export function readLengths(value: unknown): Lengths | null {
  const lengths = fields(value);
  const results = list(lengths.lengths);
  if (results.length === 0) return null;
  const figure = 'bits_per_byte' in fields(results[0]) ? 'bits_per_byte' : 'accuracy';
  return {
    figure,
    context: number(lengths.context),
    results: results.map((result) => ({
      ...readFigure(result, 'length', figure),
      places: list(fields(result).places).map((place) => readFigure(place, 'to', figure)),
    })),
  };
}
