// Charts that share an x axis: zooming one zooms all, and the cursor of one is
// the cursor of all.

export type Range = [number, number];

export interface GroupMember {
  rangeChanged(): void;
  // The cursor of another chart is at x (null: it left).
  cursorMoved(x: number | null): void;
}

const narrowest = 1e-4; // share of the full range

export class ChartGroup {
  private readonly members = new Set<GroupMember>();
  private zoomed: Range | null = null;

  // `full` is the range without a zoom. It may grow.
  constructor(private readonly full: () => Range) {}

  add(member: GroupMember): void {
    this.members.add(member);
  }

  remove(member: GroupMember): void {
    this.members.delete(member);
  }

  visible(): Range {
    return this.zoomed ?? this.full();
  }

  isZoomed(): boolean {
    return this.zoomed !== null;
  }

  zoom(from: number, to: number): void {
    const [low, high] = this.full();
    const range: Range = [Math.max(from, low), Math.min(to, high)];
    if (!(range[1] - range[0] > (high - low) * narrowest)) return;
    this.zoomed = range[0] <= low && range[1] >= high ? null : range;
    for (const member of this.members) member.rangeChanged();
  }

  // Around the middle: below 1 closer, above 1 farther.
  zoomBy(factor: number): void {
    const [from, to] = this.visible();
    const middle = (from + to) / 2;
    const half = ((to - from) / 2) * factor;
    this.zoom(middle - half, middle + half);
  }

  // By a share of what is visible.
  pan(share: number): void {
    if (this.zoomed === null) return;
    const [low, high] = this.full();
    const [from, to] = this.zoomed;
    const width = to - from;
    const start = Math.min(Math.max(from + share * width, low), high - width);
    this.zoom(start, start + width);
  }

  reset(): void {
    this.zoomed = null;
    for (const member of this.members) member.rangeChanged();
  }

  moveCursor(x: number | null, source: GroupMember): void {
    for (const member of this.members) if (member !== source) member.cursorMoved(x);
  }
}
