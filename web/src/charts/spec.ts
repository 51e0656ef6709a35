// What a chart is told.
import type { Pick } from '../curves/metrics';
import type { Range } from './group';
import type { Reference } from './overlay';

export interface ChartSpec {
  id: string;
  title: string; // in words, for those who listen and for files
  heading?: () => Node[]; // how it is shown, if not as the title
  about: string;
  log: boolean;
  compact: boolean;
  pick(): Pick;
  references(): Reference[];
  extent?: () => Range | null; // of y, where charts share it
}

export interface Axis {
  name: string;
  text(value: number): string; // of a tick
  title(value: number): string; // of a cursor
}
