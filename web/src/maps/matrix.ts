// An attention matrix, and the names of its rows and columns.
import { decodeWeights } from '../model/read-maps';
import type { AttentionMap, MapInput, Maps, Run } from '../model/document';

export interface Matrix {
  rows: number;
  columns: number;
  weights: Float32Array; // row by row
  largest: number; // of the absolute values
  step: number; // between two values that the file can tell apart
}

const cache = new WeakMap<AttentionMap, Matrix | null>();

export function matrixOf(map: AttentionMap, { rows, columns }: Maps): Matrix | null {
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

export interface Place {
  input: number;
  layer: number;
  head: number;
}

export function findMap(run: Run, place: Place): AttentionMap | null {
  const found = run.maps?.maps.find(
    (map) => map.input === place.input && map.layer === place.layer && map.head === place.head,
  );
  return found ?? null;
}

// Bytes that cannot be seen get a sign.
export function visibleToken(token: string): string {
  const signs: Record<string, string> = { ' ': '␣', '\n': '↵', '\t': '⇥', '\r': '␍', '': '∅' };
  return Object.hasOwn(signs, token) ? signs[token] : token;
}

// The patch of row or column `index`, or null for what comes before them.
export function patchOf(index: number, maps: Maps): number | null {
  return index < maps.prefix ? null : index - maps.prefix;
}

export function patchColumns(input: MapInput): number {
  return input.picture === null
    ? 1
    : Math.max(1, Math.floor(input.picture.width / input.picture.patch));
}

export function tokenName(index: number, maps: Maps, input: MapInput): string {
  const patch = patchOf(index, maps);
  if (patch === null) return index === 0 ? 'class token' : 'distillation token';
  if (input.picture !== null) {
    const across = patchColumns(input);
    return `patch ${Math.floor(patch / across) + 1}, ${(patch % across) + 1}`;
  }
  const token = input.tokens?.[patch];
  return token === undefined ? `token ${patch + 1}` : `token ${patch + 1} “${visibleToken(token)}”`;
}
