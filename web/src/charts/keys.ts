// A chart under the fingers: arrows move the cursor, + - 0 zoom, Page Up and Page
// Down move what is visible.
import { lastAtMost } from '../curves/curve';
import type { ChartGroup } from './group';

export interface KeyTarget {
  group: ChartGroup;
  x: number[];
  index: number | null; // of the cursor
}

function moved(key: string, index: number, by: number, first: number, last: number): number | null {
  switch (key) {
    case 'ArrowLeft':
      return Math.max(first, index - by);
    case 'ArrowRight':
      return Math.min(last, index + by);
    case 'Home':
      return first;
    case 'End':
      return last;
    default:
      return null;
  }
}

// The point to which the cursor goes, or null if it stays.
export function chartKeys(event: KeyboardEvent, { group, x, index }: KeyTarget): number | null {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  const zooms: Record<string, () => void> = {
    '+': () => group.zoomBy(0.5),
    '=': () => group.zoomBy(0.5),
    '-': () => group.zoomBy(2),
    '0': () => group.reset(),
    PageUp: () => group.pan(-0.5),
    PageDown: () => group.pan(0.5),
  };
  const isPan = event.key === 'PageUp' || event.key === 'PageDown';
  if (Object.hasOwn(zooms, event.key) && (!isPan || group.isZoomed())) {
    zooms[event.key]();
    event.preventDefault();
    return null;
  }
  const [low, high] = group.visible();
  const last = lastAtMost(x, high);
  const first = Math.min(last, lastAtMost(x, low) + (x[lastAtMost(x, low)] === low ? 0 : 1));
  if (last < 0) return null;
  const start = index ?? first - 1;
  const target = moved(event.key, start, event.shiftKey ? 10 : 1, first, last);
  if (target !== null) event.preventDefault();
  return target;
}
