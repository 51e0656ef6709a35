// An attention matrix, and how it is found.
import { decodeWeights } from '../model/read-maps';
import type { AttentionMap, MapLayer, Maps, Run } from '../model/document';

export interface Matrix {
  rows: number;
  columns: number;
  weights: Float32Array; // row by row
  largest: number; // of the absolute values
  step: number; // between two values that the file can tell apart
}

const cache = new WeakMap<AttentionMap, Matrix | null>();

export function matrixOf(map: AttentionMap, { rows, columns }: MapLayer): Matrix | null {
  const known = cache.get(map);
  if (known !== undefined) return known;
  const weights = decodeWeights(map, rows, columns);
  const matrix =
    weights === null
      ? null
      : {
          rows,
          columns,
          weights,
          largest: weights.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0),
          step: map.scale / 127,
        };
  cache.set(map, matrix);
  return matrix;
}

// Which matrix is meant.
export interface MapPlace {
  input: number;
  layer: number;
  head: number;
  window: number;
}

export function findMap(run: Run, place: MapPlace): AttentionMap | null {
  const keys = ['input', 'layer', 'head', 'window'] as const;
  const found = run.maps?.maps.find((map) => keys.every((key) => map[key] === place[key]));
  return found ?? null;
}

export function layerOf(maps: Maps | null, layer: number): MapLayer | null {
  return maps?.layers.find((known) => known.layer === layer) ?? null;
}
