// Where the rows and columns of a map are on the picture.
import { describe, expect, it } from 'vitest';
import {
  frameNote,
  frameOf,
  keyName,
  keyPlace,
  middleRow,
  queryName,
  queryPlace,
  spotAt,
} from '../../src/maps/frame';
import type { MapLayer, MapWindows } from '../../src/model/document';

const picture = { width: 10, height: 12, channels: 1, patch: 1, pixels: '' };
const input = { label: '', picture, tokens: null };

function windowed(windows: MapWindows, patch = 2): MapLayer {
  const rows = windows.side ** 2;
  return { layer: 0, kind: 'window', stage: 0, rows, columns: rows, prefix: 0, patch, windows };
}

// 6 x 5 tokens, filled up to 6 x 6.
const shifted = windowed({ height: 6, width: 5, side: 3, down: 1, right: 2 });

describe('windows', () => {
  it('are counted row by row, and so are their tokens', () => {
    const still = windowed({ height: 6, width: 5, side: 3, down: 0, right: 0 });
    const frame = frameOf(still, 2, input);
    expect(queryPlace(frame, 0)).toEqual({ x: 0, y: 3 });
    expect(keyPlace(frame, 5)).toEqual({ x: 2, y: 4 });
    expect(queryName(frame, 5)).toBe('patch 5, 3');
    expect(middleRow(frame)).toBe(6);
    expect(
      middleRow(frameOf(windowed({ height: 4, width: 4, side: 4, down: 0, right: 0 }), 0, input)),
    ).toBe(10);
  });

  it('are shifted, around the edges too', () => {
    expect(queryPlace(frameOf(shifted, 0, input), 0)).toEqual({ x: 2, y: 1 });
    // The last one: rows 4, 5 and 0, columns 5 (that fills up), 0 and 1.
    const last = frameOf(shifted, 3, input);
    expect(queryPlace(last, 0)).toBeNull();
    expect(queryName(last, 0)).toBe('filling');
    expect(queryPlace(last, 1)).toEqual({ x: 0, y: 4 });
    expect(keyName(last, 8)).toBe('patch 1, 2');
  });

  it('are found again from the picture', () => {
    for (let window = 0; window < 4; ++window) {
      const frame = frameOf(shifted, window, input);
      for (let row = 0; row < 9; ++row) {
        const place = queryPlace(frame, row);
        if (place === null) continue;
        // From whichever window one looks.
        expect(spotAt(frameOf(shifted, 1, input), place)).toEqual({ row, column: null, window });
      }
    }
  });

  it('say where they are', () => {
    expect(frameNote(frameOf(shifted, 2, input))).toContain(
      'Window 2, 1 of stage 1, shifted by 1 patches down and 2 right;',
    );
    const edges = [0, 1, 2, 3].map((window) =>
      frameNote(frameOf(shifted, window, input)).includes('from opposite edges'),
    );
    expect(edges).toEqual([false, true, true, true]);
    const still = windowed({ height: 6, width: 5, side: 3, down: 0, right: 0 });
    expect(frameNote(frameOf(still, 3, input))).not.toContain('opposite');
    expect(frameNote(frameOf(still, 0, input))).toContain('Window 1, 1 of stage 1, not shifted;');
  });
});

it('channels have no place', () => {
  const layer: MapLayer = { ...shifted, kind: 'channel', windows: null, patch: null };
  const frame = frameOf(layer, 0, input);
  expect(queryPlace(frame, 3)).toBeNull();
  expect(spotAt(frame, { x: 0, y: 0 })).toBeNull();
  expect(keyName(frame, 3)).toBe('channel 4');
  expect(middleRow(frame)).toBe(0);
});

it('a class token looks at patches', () => {
  const layer: MapLayer = {
    ...shifted,
    kind: 'class',
    rows: 1,
    columns: 31,
    prefix: 1,
    windows: null,
  };
  const frame = frameOf(layer, 0, input);
  expect(queryName(frame, 0)).toBe('class token');
  expect(queryPlace(frame, 0)).toBeNull();
  expect(keyName(frame, 0)).toBe('class token');
  expect(keyPlace(frame, 0)).toBeNull();
  expect(keyPlace(frame, 7)).toEqual({ x: 1, y: 1 });
  expect(keyName(frame, 7)).toBe('patch 2, 2');
  expect(spotAt(frame, { x: 1, y: 1 })).toEqual({ row: 0, column: 7 });
});
