// Attention maps: the numbers stay in base64 until someone looks at them.
import type {
  AttentionMap,
  MapInput,
  MapKind,
  MapLayer,
  Maps,
  MapWindows,
  Picture,
} from './document';
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
    window: map.window === undefined ? 0 : number(map.window),
    scale: number(map.scale),
    values: text(map.values),
  };
}

function readWindows(value: unknown): MapWindows | null {
  const windows = fields(value);
  const result = {
    height: number(windows.height),
    width: number(windows.width),
    side: number(windows.side),
    down: number(windows.down),
    right: number(windows.right),
  };
  const shifts = [result.down, result.right];
  const fits =
    [result.height, result.width, result.side].every(isSide) &&
    shifts.every((shift) => Number.isInteger(shift) && shift >= 0 && shift < result.side);
  return fits ? result : null;
}

const kinds: MapKind[] = ['token', 'window', 'channel', 'class'];

// Null if it cannot be shown.
function readLayer(value: unknown): MapLayer | null {
  const layer = fields(value);
  const kind = kinds.find((known) => known === layer.kind);
  const windows = kind === 'window' ? readWindows(layer.windows) : null;
  const result = {
    layer: number(layer.layer),
    stage: number(layer.stage),
    rows: number(layer.rows),
    columns: number(layer.columns),
    prefix: number(layer.prefix) > 0 ? number(layer.prefix) : 0,
    patch: isSide(number(layer.patch)) ? number(layer.patch) : null,
  };
  const fits = isSide(result.rows) && isSide(result.columns) && result.layer >= 0;
  const whole = kind !== 'window' || (windows !== null && windows.side ** 2 === result.rows);
  return kind !== undefined && fits && whole ? { ...result, kind, windows } : null;
}

// Of a document whose layers are all over the tokens of the input.
function sameLayers(maps: Record<string, unknown>, layers: number[]): MapLayer[] {
  const first = maps.class_token === true ? 1 : 0;
  const shape = {
    kind: 'token' as const,
    stage: 0,
    rows: number(maps.rows),
    columns: number(maps.columns),
    prefix: number(maps.prefix) > 0 ? number(maps.prefix) : first,
    patch: null,
    windows: null,
  };
  if (!isSide(shape.rows) || !isSide(shape.columns)) return [];
  return [...new Set(layers)].map((layer) => ({ layer, ...shape }));
}

export function readMaps(value: unknown): Maps | null {
  if (value === null || value === undefined) return null;
  const document = fields(value);
  const maps = list(document.maps).map(readMap);
  const layers =
    document.layers === undefined
      ? sameLayers(
          document,
          maps.map((map) => map.layer),
        )
      : list(document.layers)
          .map(readLayer)
          .filter((layer) => layer !== null);
  if (layers.length === 0) return null;
  return { inputs: list(document.inputs).map(readInput), layers, maps };
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
