// What can be drawn of a run against its steps or its time.
import type { Figure, HeadNorms, LayerNorms, Run, TrainSeries } from '../model/document';
import type { View } from '../view/store';
import { lastAtMost, type Curve } from './curve';

// y against the steps of its records, or null if the run has none.
export interface Picked {
  step: Float64Array;
  y: Float64Array;
  points: number; // records that there were: more than steps if they were thinned
}

export type Pick = (run: Run) => Picked | null;

function ofTraining(column: (train: TrainSeries) => Float64Array): Pick {
  return ({ train }) => ({ step: train.step, y: column(train), points: train.points });
}

export const trainLoss = ofTraining((train) => train.loss);
export const learningRate = ofTraining((train) => train.lr);
export const gradientNorm = ofTraining((train) => train.gradNorm);
export const throughput = ofTraining((train) => train.itemsPerSecond);

const percentages = new WeakMap<Float64Array, Float64Array>();

function percent(shares: Float64Array): Float64Array {
  let result = percentages.get(shares);
  if (result === undefined) percentages.set(shares, (result = shares.map((share) => share * 100)));
  return result;
}

export function evalFigure(figure: Figure): Pick {
  return (run) => {
    const { step, points, accuracy, bitsPerByte, relativeL2, loss } = run.evaluation;
    const shares = accuracy === null ? null : percent(accuracy);
    const y = { accuracy: shares, bits_per_byte: bitsPerByte, relative_l2: relativeL2, loss };
    return y[figure] === null ? null : { step, y: y[figure], points };
  };
}

export const evalLoss = evalFigure('loss');

export const relativeL1: Pick = ({ evaluation: { step, points, relativeL1: y } }) =>
  y === null ? null : { step, y, points };

export function lossTerm(name: string): Pick {
  return ({ evaluation: { step, points, terms } }) => {
    const term = terms.find((known) => known.name === name);
    return term === undefined ? null : { step, y: term.values, points };
  };
}

export type HeadQuantity = 'weight' | 'jacobian' | 'score';
export type LayerQuantity = 'gradient' | 'parameters';

export type NormChoice = Readonly<{ [K in 'layer' | 'head' | 'combine' | 'relative']: View[K] }>;

function headValues(
  head: HeadNorms,
  quantity: HeadQuantity,
  combine: View['combine'],
): Float64Array {
  if (quantity === 'score') return head.maxAbsScore;
  if (quantity === 'weight') return combine === 'max' ? head.weightMax : head.weightMean;
  return combine === 'max' ? head.jacobianMax : head.jacobianMean;
}

export function chosen<T>(items: T[], index: number | 'all'): T[] {
  if (index === 'all') return items;
  return items[index] === undefined ? [] : [items[index]];
}

// Entry by entry: the largest, or the mean. A value that is not finite stays so.
function combined(parts: Float64Array[], how: View['combine']): Float64Array | null {
  if (parts.length === 0) return null;
  const result = parts[0].slice();
  for (const part of parts.slice(1)) {
    for (let i = 0; i < result.length; ++i) {
      if (how === 'mean') result[i] += part[i];
      else result[i] = Math.max(result[i], part[i]); // NaN if either is
    }
  }
  return how === 'mean' ? result.map((value) => value / parts.length) : result;
}

function overRoot(y: Float64Array, layer: LayerNorms, tokens: Float64Array): Float64Array {
  return y.map((value, i) => value / Math.sqrt(layer.tokens ?? tokens[i]));
}

export function headNorm(quantity: HeadQuantity, choice: NormChoice): Pick {
  return ({ norms }) => {
    const relative = choice.relative && quantity !== 'score';
    const parts = chosen(norms.layers, choice.layer).flatMap((layer) =>
      chosen(layer.heads, choice.head).map((head) => {
        const y = headValues(head, quantity, choice.combine);
        return relative ? overRoot(y, layer, norms.tokens) : y;
      }),
    );
    const y = combined(parts, choice.combine);
    return y === null ? null : { step: norms.step, y, points: norms.points };
  };
}

export function layerNorm(quantity: LayerQuantity, choice: NormChoice): Pick {
  const of = (layer: LayerNorms) => (quantity === 'gradient' ? layer.gradNorm : layer.weightNorm);
  return ({ norms }) => {
    const y = combined(chosen(norms.layers, choice.layer).map(of), choice.combine);
    return y === null ? null : { step: norms.step, y, points: norms.points };
  };
}

// Seconds of training after a step, between the records that tell.
export function secondsAt(run: Run, step: number): number {
  const { step: steps, seconds } = run.train;
  const at = lastAtMost(steps, step);
  const [x0, y0] = at < 0 ? [0, 0] : [steps[at], seconds[at]];
  if (x0 === step) return y0;
  if (at + 1 >= steps.length) return steps.length > 0 && x0 > 0 ? (y0 * step) / x0 : NaN;
  return y0 + ((step - x0) / (steps[at + 1] - x0)) * (seconds[at + 1] - y0);
}

function isRising(x: Float64Array): boolean {
  return x.every((value, i) => Number.isFinite(value) && (i === 0 || value > x[i - 1]));
}

// Records of a file that someone has edited: in order, the last of equal ones.
function sorted(x: Float64Array, y: Float64Array): Curve {
  const pairs = new Map<number, number>();
  for (let i = 0; i < x.length; ++i) if (Number.isFinite(x[i])) pairs.set(x[i], y[i]);
  const order = Float64Array.from(pairs.keys()).sort();
  return { x: order, y: order.map((value) => pairs.get(value) ?? NaN) };
}

export function curveOf(run: Run, pick: Pick, axis: View['axis']): Curve | null {
  const picked = pick(run);
  if (picked === null || !picked.y.some((value) => !Number.isNaN(value))) return null;
  const { step, y, points } = picked;
  let x = step;
  if (axis === 'time')
    x = step === run.train.step ? run.train.seconds : step.map((at) => secondsAt(run, at));
  const curve = isRising(x) ? { x, y } : sorted(x, y);
  return curve.x.length > 0 ? { ...curve, points } : null;
}
