// Attention maps: the numbers stay in base64 until someone looks at them.
import type { AttentionMap, MapInput, Maps, Picture } from './document';
import { fields, list, number, text, texts } from './values';

// Beyond this a browser would not draw it in reasonable time or memory.
const largestSide = 4096;

function isSide(value: number): boolean {
  return Number.isInteger(value) && value > 0 && value <= largestSide;
}

function readPicture(value: unknown): Picture | null {
  const picture = fields(value);
  const result = {
    width: number(picture.width),
    height: number(picture.height),
    channels: number(picture.channels),
    patch: number(picture.patch),
    pixels: text(picture.pixels),
  };
  const fits = isSide(result.width) && isSide(result.height) && isSide(result.patch);
  return fits && (result.channels === 1 || result.channels === 3) ? result : null;
}

function readInput(value: unknown): MapInput {
  const input = fields(value);
  return {
    label: text(input.label),
    picture: readPicture(input.image),
    tokens: Array.isArray(input.tokens) ? texts(input.tokens) : null,
  };
}

function readMap(value: unknown): AttentionMap {
  const map = fields(value);
  return {
    input: number(map.input),
    layer: number(map.layer),
    head: number(map.head),
    scale: number(map.scale),
    values: text(map.values),
  };
}

export function readMaps(value: unknown): Maps | null {
  if (value === null || value === undefined) return null;
  const maps = fields(value);
  const rows = number(maps.rows);
  const columns = number(maps.columns);
  if (!isSide(rows) || !isSide(columns)) return null;
  return {
    inputs: list(maps.inputs).map(readInput),
    prefix: number(maps.prefix) > 0 ? number(maps.prefix) : maps.class_token === true ? 1 : 0,
    rows,
    columns,
    maps: list(maps.maps).map(readMap),
  };
}

// The bytes of a base64 text, or null if it is none or does not hold `count`.
export function decodeBytes(base64: string, count: number): Uint8Array | null {
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    return null;
  }
  if (binary.length !== count) return null;
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

// The weights of a map, row by row, or null if its data is damaged.
export function decodeWeights(
  map: AttentionMap,
  rows: number,
  columns: number,
): Float32Array | null {
  const bytes = decodeBytes(map.values, rows * columns);
  if (bytes === null) return null;
  const values = new Int8Array(bytes.buffer);
  return Float32Array.from(values, (value) => (value * map.scale) / 127);
}
