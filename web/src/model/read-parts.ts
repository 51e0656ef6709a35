// Parts that several members of the document have.
import type { Figure, Sample } from './document';
import { fields, number, text } from './values';

const figures: readonly string[] = ['accuracy', 'bits_per_byte', 'relative_l2', 'loss'];

export function readFigure(value: unknown): Figure {
  const figure = text(value);
  return (figures.includes(figure) ? figure : 'loss') as Figure;
}

export function readSample(value: unknown): Sample {
  const sample = fields(value);
  return {
    mean: number(sample.mean),
    deviation: number(sample.deviation),
    count: number(sample.count) || 0,
  };
}
