// The report document (schema 1) as the page holds it. read.ts makes it from the
// JSON that C++ writes. NaN stands for a number that is not there.

export type Figure = 'accuracy' | 'bits_per_byte' | 'relative_l2' | 'loss';
export type Split = 'test' | 'validation';
export type RunState = 'running' | 'finished' | 'diverged' | 'interrupted';

export interface Sample {
  mean: number;
  deviation: number;
  count: number;
}

export interface Row {
  activation: string; // with its variant, x^3{model.start=plain}
  finished: number;
  diverged: number;
  other: number;
  figure: Sample;
  loss: Sample;
  trainSeconds: number;
  peakMb: number;
  maxWeightNorm: number;
  maxJacobianNorm: number;
  pairs: number;
  difference: number;
  halfWidth: number; // NaN if there is no interval
  best: boolean;
  likeBest: boolean;
}

export interface Comparison {
  task: string;
  figure: Figure;
  tokens: number;
  testCount: number;
  split: Split;
  baseline: string;
  intervals: string; // what they are, in a few words; '' if there are none
  verdict: string;
  cautions: string[];
  rows: Row[];
}

// A setting of a search, for one activation.
export interface GridCell {
  values: string[]; // of the keys
  figure: Sample; // a count of 0: a seed diverged
  diverged: number;
}

export interface GridRow {
  activation: string;
  cells: GridCell[];
  chosen: number; // of the cells; NaN if none is
}

export interface Grid {
  task: string;
  figure: Figure;
  validation: number; // share of the training data
  seeds: number;
  keys: string[];
  rows: GridRow[];
}

// Parallel arrays: as long as step.
export interface TrainSeries {
  points: number; // records that there were; more than here if thinned
  step: Float64Array;
  loss: Float64Array;
  lr: Float64Array;
  gradNorm: Float64Array;
  itemsPerSecond: Float64Array;
  seconds: Float64Array;
}

export interface EvalSeries {
  points: number;
  step: Float64Array;
  loss: Float64Array;
  accuracy: Float64Array | null;
  bitsPerByte: Float64Array | null;
  relativeL1: Float64Array | null;
  relativeL2: Float64Array | null;
  terms: LossTerm[]; // of the loss, if it has parts
}

export interface LossTerm {
  name: string;
  values: Float64Array;
}

export interface HeadNorms {
  weightMean: Float64Array;
  weightMax: Float64Array;
  jacobianMean: Float64Array;
  jacobianMax: Float64Array;
  maxAbsScore: Float64Array;
}

export interface LayerNorms {
  kind: string; // of its attention; empty if all layers are alike
  stage: number | null; // from 0; null if there is one
  tokens: number | null; // its N; null: that of the record
  gradNorm: Float64Array;
  weightNorm: Float64Array;
  heads: HeadNorms[];
}

export interface NormSeries {
  points: number;
  step: Float64Array;
  tokens: Float64Array;
  layers: LayerNorms[];
}

// Norms of a head before the first step, where its scores were scaled.
export interface HeadStart {
  gain: number; // of the scores
  before: number; // the norm as drawn
  after: number; // as training began
  softmax: number; // of softmax on these scores
}

export interface Start {
  factor: number; // of softmax's norm, as asked for
  layers: HeadStart[][];
}

export interface Picture {
  width: number;
  height: number;
  channels: number;
  patch: number;
  pixels: string; // base64
}

export interface MapInput {
  label: string;
  picture: Picture | null;
  tokens: string[] | null;
}

export interface AttentionMap {
  input: number;
  layer: number;
  head: number;
  window: number; // 0 where there are none
  scale: number;
  values: string; // base64 of int8: weight = value * scale / 127
}

// A map of tokens, cut into windows after it was shifted up and to the left.
export interface MapWindows {
  height: number;
  width: number;
  side: number;
  down: number;
  right: number;
}

export type MapKind = 'token' | 'window' | 'channel' | 'class';

// What the matrices of a layer are over.
export interface MapLayer {
  layer: number;
  kind: MapKind;
  stage: number;
  rows: number;
  columns: number;
  prefix: number; // columns before those of the input: the class token, the distillation token
  patch: number | null; // pixels; null: that of the picture
  windows: MapWindows | null;
}

export interface Maps {
  inputs: MapInput[];
  layers: MapLayer[]; // those that have maps
  maps: AttentionMap[];
}

// What a language model reaches at a length, or after so many tokens were read.
export interface LengthFigure {
  tokens: number;
  value: number;
}

export interface LengthResult extends LengthFigure {
  places: LengthFigure[];
}

export interface Lengths {
  figure: 'accuracy' | 'bits_per_byte';
  context: number; // tokens of an example of the training
  results: LengthResult[];
}

export interface SolutionAxis {
  name: string;
  values: Float64Array; // rising
}

// A number for each point, row by row, in two bytes each: see decodeField().
export interface CodedField {
  low: number;
  step: number;
  values: string; // base64
}

// The solution of an equation, and what the model says less that.
export interface Solution {
  columns: SolutionAxis;
  rows: SolutionAxis;
  exact: CodedField;
  error: CodedField;
}

export interface Run {
  name: string;
  task: string;
  activation: string;
  seed: number;
  state: RunState;
  step: number;
  steps: number;
  parameters: number;
  version: string;
  command: string;
  instructionSet: string;
  threads: number;
  machine: string;
  started: string;
  trainSeconds: number;
  evalSeconds: number;
  peakMb: number;
  loss: number | null;
  accuracy: number | null;
  bitsPerByte: number | null;
  relativeL1: number | null;
  relativeL2: number | null;
  tokens: number;
  teacher: string; // its run and model; '' if there was none
  maxWeightNorm: number;
  maxJacobianNorm: number;
  divergence: { step: number; what: string } | null;
  config: string;
  train: TrainSeries;
  evaluation: EvalSeries;
  norms: NormSeries;
  start: Start | null;
  updated: string; // when a record was last written
  maps: Maps | null;
  lengths: Lengths | null;
  solution: Solution | null;
}

export interface TheoryRow {
  compared: string;
  subject: string;
  tokens: number;
  tokensTo: number | null; // of an exponent
  samples: number;
  relation: string;
  expected: number;
  measured: number;
  interval: [number, number] | null;
  strain: number | null; // above 1 it fails
  ratio: number | null;
  verdict: string;
}

export interface Claim {
  id: string;
  status: string;
  statement: string;
  computed: string;
  notes: string[];
  holds: boolean | null;
  rows: TheoryRow[];
}

export interface Theory {
  width: number;
  seed: number;
  comparisons: number;
  tail: number;
  holds: boolean;
  claims: Claim[];
}

export interface Spread {
  median: number;
  low: number; // quartiles
  high: number;
}

// A row of polyattn bench: ours beside its baseline.
export interface BenchRow {
  name: string;
  threads: number;
  measure: string; // what the value is: sgemm_ratio, time_ratio, speedup, megabytes
  value: Spread;
  bound: string; // 'at least', 'at most', '' without a goal
  goal: number | null;
  reached: boolean | null;
  tokens: number; // N; NaN of what has no length
  activation: string; // '' of what is no call of the kernels
  path: string; // how it was computed, where there are several ways
  setting: string; // everything else that was given: what can be compared has the same
  time: Spread; // milliseconds
  baseline: string; // its name
  baselineTime: Spread;
  speedup: Spread; // over the baseline
  megabytes: { ours: number; baseline: number } | null; // of two that are weighed
  extraBytes: number;
}

// Rows of a kind that has no place of its own, as they are.
export interface BenchTable {
  title: string;
  columns: string[];
  rows: unknown[][];
}

// Accuracy of a model in training against processor time.
export interface QualityCurve {
  model: string;
  by: string; // who computed: polyattn, or PyTorch
  target: number;
  points: { seconds: number; accuracy: number }[];
}

export interface Bench {
  rows: BenchRow[];
  paths: BenchRow[]; // for the drawing against N alone
  tables: BenchTable[];
  curves: QualityCurve[];
}

export interface Report {
  version: string;
  generated: string;
  live: boolean;
  title: string;
  verdict: string;
  comparisons: Comparison[];
  grids: Grid[];
  runs: Run[];
  theory: Theory | null;
  bench: Bench | null;
}
