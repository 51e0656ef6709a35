import { describe, expect, it } from 'vitest';
import { csvText, fileName } from '../../src/text/csv';

const table = (rows: (string | number | null)[][]) =>
  csvText({ name: 't', columns: ['a', 'b'], rows });

describe('csvText', () => {
  it('quotes what RFC 4180 wants quoted', () => {
    expect(table([['x,y', 'say "hi"']])).toBe('a,b\r\n"x,y","say ""hi"""\r\n');
    expect(table([['two\nlines', ' edge ']])).toBe('a,b\r\n"two\nlines"," edge "\r\n');
  });

  it('keeps numbers numbers', () => {
    expect(table([[-1.5, 1e-7]])).toBe('a,b\r\n-1.5,1e-7\r\n');
    expect(table([[NaN, Infinity]])).toBe('a,b\r\nnan,inf\r\n');
    expect(table([[-Infinity, null]])).toBe('a,b\r\n-inf,\r\n');
  });

  it.each(['=1+1', '+1', '-x^2', '@SUM(A1)'])('lets no spreadsheet run %s', (text) => {
    expect(table([[text, 1]])).toBe(`a,b\r\n'${text},1\r\n`);
  });

  it('guards what begins with white space, and columns', () => {
    expect(table([['\t=1', 1]])).toBe("a,b\r\n'\t=1,1\r\n");
    expect(csvText({ name: 't', columns: ['=x'], rows: [] })).toBe("'=x\r\n");
  });
});

describe('fileName', () => {
  it('takes what every file system takes', () => {
    expect(fileName('attention-x^3/sqrt(N)')).toBe('attention-x-3-sqrt-N.csv');
    expect(fileName('../../etc/passwd')).toBe('etc-passwd.csv');
    expect(fileName('<>')).toBe('data.csv');
  });
});
