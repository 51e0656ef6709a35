// The curves of a run.
import type {
  EvalSeries,
  HeadNorms,
  HeadStart,
  LayerNorms,
  NormSeries,
  Start,
  TrainSeries,
} from './document';
import { fields, list, number, numberOrNull, numbers, text } from './values';

// Records that there were, which cannot be fewer than there are.
function pointsOf(value: unknown, shown: number): number {
  return Math.max(number(value) || 0, shown);
}

export function readTrainSeries(value: unknown, points: unknown): TrainSeries {
  const train = fields(value);
  const step = numbers(train.step);
  const column = (name: string) => numbers(train[name], step.length);
  return {
    points: pointsOf(points, step.length),
    step,
    loss: column('loss'),
    lr: column('lr'),
    gradNorm: column('grad_norm'),
    itemsPerSecond: column('items_per_second'),
    seconds: column('seconds'),
  };
}

export function readEvalSeries(value: unknown): EvalSeries {
  const evaluation = fields(value);
  const step = numbers(evaluation.step);
  const optional = (name: string) =>
    Array.isArray(evaluation[name]) ? numbers(evaluation[name], step.length) : null;
  return {
    points: pointsOf(evaluation.points, step.length),
    step,
    loss: numbers(evaluation.loss, step.length),
    accuracy: optional('accuracy'),
    bitsPerByte: optional('bits_per_byte'),
    relativeL1: optional('relative_l1'),
    relativeL2: optional('relative_l2'),
    terms: Object.entries(fields(evaluation.terms)).map(([name, values]) => ({
      name,
      values: numbers(values, step.length),
    })),
  };
}

function readHead(value: unknown, length: number): HeadNorms {
  const head = fields(value);
  return {
    weightMean: numbers(head.weight_mean, length),
    weightMax: numbers(head.weight_max, length),
    jacobianMean: numbers(head.jacobian_mean, length),
    jacobianMax: numbers(head.jacobian_max, length),
    maxAbsScore: numbers(head.max_abs_score, length),
  };
}

export function readNormSeries(value: unknown): NormSeries {
  const norms = fields(value);
  const step = numbers(norms.step);
  const layers: LayerNorms[] = list(norms.layers).map((entry) => {
    const layer = fields(entry);
    return {
      kind: text(layer.kind),
      stage: numberOrNull(layer.stage),
      tokens: numberOrNull(layer.tokens),
      gradNorm: numbers(layer.grad_norm, step.length),
      weightNorm: numbers(layer.weight_norm, step.length),
      heads: list(layer.heads).map((head) => readHead(head, step.length)),
    };
  });
  return {
    points: pointsOf(norms.points, step.length),
    step,
    tokens: numbers(norms.tokens, step.length),
    layers,
  };
}

// Lists by layer and head; those of the gains say how many there are.
export function readStart(value: unknown): Start | null {
  const start = fields(value);
  const layers = list(start.gain).map((gains, layer): HeadStart[] => {
    const row = (name: string) => numbers(list(start[name])[layer], list(gains).length);
    const before = row('weight_before');
    const after = row('weight');
    const softmax = row('softmax');
    return Array.from(row('gain'), (gain, head) => ({
      gain,
      before: before[head],
      after: after[head],
      softmax: softmax[head],
    }));
  });
  const isThere = layers.some((heads) => heads.length > 0);
  return isThere ? { factor: number(start.factor), layers } : null;
}
