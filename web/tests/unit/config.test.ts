import { describe, expect, it } from 'vitest';
import { differences, readConfig } from '../../src/text/config';

describe('readConfig', () => {
  it('reads sections, strings and comments', () => {
    const config = readConfig(
      '# top\n[model]\nactivation = "x # \\"3\\""  # formula\ndim = 64   # width\n[train]\nlr = 2e-3\n',
    );
    expect([...config]).toEqual([
      ['model.activation', 'x # "3"'],
      ['model.dim', '64'],
      ['train.lr', '2e-3'],
    ]);
  });

  it('takes any text without harm', () => {
    const config = readConfig('__proto__ = 1\n[__proto__]\nx = 2\n<script>\n=\n[');
    expect(config.get('__proto__')).toBe('1');
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });
});

describe('differences', () => {
  it('names keys that vary, but not the expected ones', () => {
    const configs = ['1', '2'].map((value) =>
      readConfig(`[train]\nseed = ${value}\nlr = ${value}\nbatch = 4`),
    );
    expect(differences(configs, ['train.seed'])).toEqual([{ key: 'train.lr', values: ['1', '2'] }]);
  });
});
