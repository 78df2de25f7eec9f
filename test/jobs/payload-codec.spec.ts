import { describe, expect, it } from '@jest/globals';
import { runInNewContext } from 'node:vm';
import { z } from 'zod';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import {
  decodePayload,
  encodeMetadata,
  encodePayload,
  encodeProgress,
  encodeResult,
} from '../../lib/jobs/payload-codec.js';

const Any: JobDefinition = defineJob<unknown>('any.job');
const MB = 1_000_000;
const encode = (value: unknown, definition = Any, maxBytes = MB): Promise<string> =>
  encodePayload(definition, value, maxBytes);
const trip = async (value: unknown, definition = Any): Promise<unknown> =>
  decodePayload(definition, JSON.parse(await encode(value, definition)), definition.version);

class Money {
  constructor(readonly cents: number) {}
  plus(): this {
    return this;
  }
}
const cyclic = (): object => {
  const value: Record<string, unknown> = { list: [] };
  (value['list'] as unknown[]).push({ back: value });
  return value;
};
const hidden = <T extends object>(value: T): T => Object.defineProperty(value, 'secret', { value: 1 });
const argumentsOf = runInNewContext('(function () { return arguments; })') as (...given: unknown[]) => object;
const nested = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = [value];
  return value;
};

describe('a payload without a schema', () => {
  it.each([
    [{ a: 1, b: 'x', c: [true, null, { d: [] }], 'odd key': '😀' }],
    ['text'],
    [0],
    [null],
    [[[]]],
    [Number.MAX_SAFE_INTEGER],
    [5e-324],
    [1.7976931348623157e308],
  ])('comes back equal: %j', async (value) => {
    expect(await trip(value)).toEqual(value);
  });

  it('is null in the store when there is none', async () => {
    expect(await encode(undefined)).toBe('null');
  });

  it('leaves out properties that are undefined, as optional ones are', async () => {
    expect(await encode({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  it('writes -0 as 0', async () => {
    expect(await encode([-0])).toBe('[0]');
  });

  it('keeps a property called __proto__ a property', async () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true}}');
    const back = (await trip(value)) as object;
    expect(Object.keys(back)).toEqual(['__proto__']);
    expect((back as { admin?: boolean }).admin).toBeUndefined();
  });

  it('takes plain objects of another realm and without a prototype', async () => {
    expect(await trip(runInNewContext('({ a: [1] })'))).toEqual({ a: [1] });
    expect(await trip(Object.assign(Object.create(null) as object, { a: 1 }))).toEqual({ a: 1 });
  });

  it('reads a getter once', async () => {
    let reads = 0;
    const value = {
      get once() {
        return ++reads;
      },
    };
    expect(await encode(value)).toBe('{"once":1}');
  });

  it('may carry a symbol that is not enumerable: a mark of some library, no data', async () => {
    const value = Object.defineProperty({ a: 1 }, Symbol('mark'), { value: 1 });
    expect(await encode(value)).toBe('{"a":1}');
  });

  it('may hold one object twice', async () => {
    const shared = { a: 1 };
    expect(await trip([shared, shared])).toEqual([shared, shared]);
  });

  const refused: [string, unknown, string, string][] = [
    ['NUL', { a: ['x\0y'] }, 'payload.a[0]', 'NUL'],
    ['NUL in a key', { a: { 'x\0': 1 } }, 'payload.a["x\\u0000"]', 'NUL'],
    ['half a surrogate pair', { a: 'x\ud800' }, 'payload.a', 'surrogate'],
    ['a bigint', { a: 1n }, 'payload.a', 'bigint'],
    ['a cycle', cyclic(), 'payload.list[0].back', 'refers back to payload,'],
    ['NaN', { a: { b: Number.NaN } }, 'payload.a.b', 'NaN'],
    ['Infinity', [-Infinity], 'payload[0]', '-Infinity'],
    ['undefined in an array', [1, undefined], 'payload[1]', 'undefined'],
    ['a hole in an array', [1].concat(new Array<number>(1), 3), 'payload[1]', 'undefined'],
    ['a function', { a: () => 1 }, 'payload.a', 'function'],
    ['a symbol', { a: Symbol('x') }, 'payload.a', 'symbol'],
    ['a symbol as key', { a: { [Symbol('x')]: 1 } }, 'payload.a', 'symbol'],
    ['an array with a property', { a: 'xy'.match(/y/) }, 'payload.a', '.index that is no index'],
    [
      'an array with a symbol',
      Object.assign([], { [Symbol('x')]: 1 }),
      'payload',
      '[Symbol(x)] that is a symbol',
    ],
    ['a hidden property', { a: hidden({ b: 1 }) }, 'payload.a', '.secret that is not enumerable'],
    ['the arguments of a function', { a: argumentsOf(1, 2) }, 'payload.a', '[...arguments]'],
    ['a Map', { a: new Map() }, 'payload.a', 'Object.fromEntries'],
    ['a Set', { a: new Set() }, 'payload.a', 'Set'],
    ['a Date', { a: new Date(0) }, 'payload.a', 'toISOString'],
    ['a Date of another realm', runInNewContext('({ a: new Date(0) })'), 'payload.a', 'Date'],
    ['a Buffer', { a: Buffer.from('x') }, 'payload.a', 'base64'],
    ['a typed array', new Uint16Array(2), 'payload', 'Uint16Array'],
    ['a RegExp', { a: /x/ }, 'payload.a', 'RegExp'],
    ['an Error', { a: new Error('x') }, 'payload.a', 'Error'],
    ['a promise', { a: Promise.resolve(1) }, 'payload.a', 'Promise'],
    ['an instance of a class', { a: new Money(1) }, 'payload.a', 'Money'],
    ['a boxed text', { a: Object('x') as unknown }, 'payload.a', 'String'],
    ['a toJSON of its own', { a: { toJSON: () => 1 } }, 'payload.a', 'toJSON'],
    [
      'a getter that throws',
      {
        get a() {
          throw new Error('trap');
        },
      },
      'payload.a',
      'trap',
    ],
    ['a function as payload', () => 1, 'payload', 'function'],
  ];

  it.each(refused)('is refused with %s', async (_what, value, path, words) => {
    const error: unknown = await encode(value).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'PAYLOAD_NOT_JSON', jobName: 'any.job', path });
    expect((error as Error).message).toContain(words);
  });

  it('may be a thousand levels deep, no more, and never costs the stack', async () => {
    expect(await trip(nested(1_000))).toEqual(nested(1_000));
    for (const levels of [1_001, 100_000]) {
      const error: unknown = await encode(nested(levels)).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: 'PAYLOAD_NOT_JSON' });
      expect((error as Error).message).toContain('deeper than 1000 levels');
      expect((error as Error).message.length).toBeLessThan(600);
    }
  });

  it('is measured in bytes', async () => {
    expect(await encode('é'.repeat(10), Any, 22)).toHaveLength(12);
    await expect(encode('é'.repeat(10), Any, 21)).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      maxBytes: 21,
    });
  });

  it('cannot hold the process by naming one object over and over', async () => {
    let value: unknown = 'x';
    for (let level = 0; level < 60; level++) value = [value, value];
    await expect(encode(value)).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });
});

describe('a payload with a schema', () => {
  const Resize: JobDefinition = defineJob('resize', {
    schema: z.object({ width: z.string().transform(Number), tags: z.array(z.string()).default([]) }),
  });

  it('stores the input and hands over the output', async () => {
    expect(await encode({ width: '7' }, Resize)).toBe('{"width":"7"}');
    expect(await trip({ width: '7' }, Resize)).toEqual({ width: 7, tags: [] });
  });

  it('is refused with the path of every issue', async () => {
    const error: unknown = await encode({ width: 7, tags: ['a', 1] }, Resize).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({
      code: 'PAYLOAD_INVALID',
      issues: [{ path: 'payload.width' }, { path: 'payload.tags[1]' }],
    });
  });

  it('fails at the run when a newer schema refuses what was stored', async () => {
    await expect(decodePayload(Resize, { width: 7 }, 1)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' });
  });

  it('may be checked asynchronously', async () => {
    const schema = z.object({
      id: z.string().refine(async (id) => Promise.resolve(id !== 'taken'), 'is taken'),
    });
    const Async: JobDefinition = defineJob('async', { schema });
    expect(await trip({ id: 'free' }, Async)).toEqual({ id: 'free' });
    await expect(encode({ id: 'taken' }, Async)).rejects.toThrow('payload.id: is taken');
  });

  it('may hold a Date that the schema takes back from its text', async () => {
    const Dated: JobDefinition = defineJob('dated', { schema: z.object({ due: z.coerce.date() }) });
    const due = new Date('2030-01-02T03:04:05.678Z');
    expect(await encode({ due }, Dated)).toBe('{"due":"2030-01-02T03:04:05.678Z"}');
    expect(await trip({ due }, Dated)).toEqual({ due });
  });

  it('is refused at enqueue when only its original form would pass', async () => {
    const Strict: JobDefinition = defineJob('strict', { schema: z.object({ due: z.date() }) });
    await expect(encode({ due: new Date(0) }, Strict)).rejects.toThrow('z.coerce.date()');
  });

  it('is checked again without the properties that JSON leaves out', async () => {
    const schema = z.any().refine((value: object) => 'secret' in value, 'has no secret');
    const Telling: JobDefinition = defineJob('telling', { schema });
    for (const value of [hidden({ a: 1 }), Object.assign([1], { secret: 1 })]) {
      await expect(encode(value, Telling)).rejects.toThrow('has no secret (in the JSON form');
    }
  });

  it('may be an instance of a class', async () => {
    const Paid: JobDefinition = defineJob('paid', { schema: z.object({ cents: z.number() }) });
    expect(await trip(new Money(5), Paid)).toEqual({ cents: 5 });
  });

  it.each([[new Map()], [new Set()], [1n], [Number.NaN], [new Uint8Array(2)], ['\0']])(
    'still holds nothing without a JSON form: %p',
    async (value) => {
      const Loose: JobDefinition = defineJob('loose', { schema: z.any() });
      await expect(encode({ value }, Loose)).rejects.toMatchObject({
        code: 'PAYLOAD_NOT_JSON',
        path: 'payload.value',
      });
    },
  );

  it('may be left out where the schema allows it', async () => {
    const Optional: JobDefinition = defineJob('optional', {
      schema: z.object({ n: z.number() }).default({ n: 1 }),
    });
    const Nullable: JobDefinition = defineJob('nullable', { schema: z.null() });
    expect(await trip(undefined, Optional)).toEqual({ n: 1 });
    expect(await trip(null, Nullable)).toBeNull();
    await expect(encode(undefined, Resize)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' });
  });

  it('is refused when the schema itself throws', async () => {
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: () => {
          throw new Error('broken schema');
        },
      },
    };
    const Broken: JobDefinition = defineJob('broken', { schema });
    await expect(encode({}, Broken)).rejects.toThrow('the schema threw: broken schema');
    await expect(decodePayload(Broken, {}, 1)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' });
  });
});

describe('upcast', () => {
  const Renamed: JobDefinition = defineJob('renamed', {
    version: 3,
    schema: z.object({ orderId: z.string() }),
    upcast: async (stored, fromVersion) => Promise.resolve(fromVersion === 1 ? { orderId: stored } : stored),
  });

  it('fits what an older version stored', async () => {
    expect(await decodePayload(Renamed, 'o1', 1)).toEqual({ orderId: 'o1' });
    expect(await decodePayload(Renamed, { orderId: 'o2' }, 2)).toEqual({ orderId: 'o2' });
  });

  it('leaves alone what this version stored', async () => {
    await expect(decodePayload(Renamed, 'o1', 3)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' });
  });

  it('says so when it fails', async () => {
    const Failing: JobDefinition = defineJob('failing', {
      version: 2,
      upcast: () => {
        throw null;
      },
    });
    await expect(decodePayload(Failing, {}, 1)).rejects.toMatchObject({
      code: 'PAYLOAD_UPCAST_FAILED',
      jobName: 'failing',
      fromVersion: 1,
      toVersion: 2,
      message: expect.stringMatching(/: upcast from version 1 to 2 threw: .+; mend upcast/),
    });
  });

  it('may return what is no JSON: the schema decides, or the handler gets it as it is', async () => {
    const upcast = (stored: unknown): unknown => (stored === 'none' ? undefined : new Date(stored as string));
    const policy = { version: 2, upcast };
    const Checked: JobDefinition = defineJob('checked', { ...policy, schema: z.date() });
    const Free: JobDefinition = defineJob('free', policy);
    const due = '2030-01-02T00:00:00.000Z';
    expect(await decodePayload(Checked, due, 1)).toEqual(new Date(due));
    await expect(decodePayload(Checked, 'none', 1)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' });
    expect(await decodePayload(Free, due, 1)).toEqual(new Date(due));
    expect(await decodePayload(Free, 'none', 1)).toBeUndefined();
  });

  it('is not needed: the schema then gets what was stored, and its refusal names both versions', async () => {
    const schema = z.object({ orderId: z.string() });
    const Bare: JobDefinition = defineJob('bare', { version: 2, schema });
    expect(await decodePayload(Bare, { orderId: 'o1' }, 1)).toEqual({ orderId: 'o1' });
    await expect(decodePayload(Bare, 'o1', 1)).rejects.toThrow(
      '(stored by version 1, read by version 2, there is no upcast)',
    );
    await expect(decodePayload(Bare, 'o1', 2)).rejects.not.toThrow('stored by version');
    await expect(decodePayload(Renamed, { id: 'o1' }, 2)).rejects.toThrow(
      '(stored by version 2, read by version 3, after upcast)',
    );
  });
});

describe('a result', () => {
  it.each([
    [{ x: '\0a' }, '{"x":"a"}'],
    ['\ud800', '"\uFFFD"'],
    [{ sum: 12n }, '{"sum":"12"}'],
    [[undefined, Number.NaN, Infinity, () => 1], '[null,null,null,null]'],
    [{ a: undefined, b: () => 1, c: Symbol('x'), d: 1 }, '{"d":1}'],
    [new Map([['a', 1]]), '[["a",1]]'],
    [new Set([1]), '[1]'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [new Money(1), '{"cents":1}'],
    [new TypeError('no'), '{"name":"TypeError","message":"no"}'],
    [cyclic(), '{"list":[{"back":"[circular]"}]}'],
    [[Object('a'), Object(1), Object(false), Object(2n)] as unknown, '["a",1,false,"2"]'],
    [Object.assign([1], { toJSON: () => 'own' }), '"own"'],
    [hidden({ a: 1 }), '{"a":1}'],
    [null, 'null'],
  ])('is cleaned, not refused: %p', (value, text) => {
    expect(encodeResult(value, MB)).toEqual({ text });
  });

  it('is nothing when there is none', () => {
    expect(encodeResult(undefined, MB)).toBeUndefined();
  });

  it('keeps what can be read of an object with traps', () => {
    const value = {
      ok: 1,
      get bad() {
        throw new Error('trap');
      },
      toJson: { toJSON: () => Promise.reject(new Error('x')).catch(() => 1) },
    };
    expect(encodeResult(value, MB)?.text).toContain('"ok":1,"bad":"[threw: trap]"');
  });

  it('becomes a small marker when it is too large, or cannot be read at all', () => {
    const large = encodeResult('x'.repeat(2 * MB), MB);
    expect(large?.replaced).toBe('larger than 1000000 bytes');
    expect(JSON.parse(large!.text)).toEqual({
      ratchet: 'the result was not kept',
      reason: 'larger than 1000000 bytes',
    });
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(encodeResult(proxy, MB)?.replaced).toContain('not readable');
  });

  it('is cut off where it is too deep', () => {
    expect(encodeResult(nested(100_000), MB)?.text).toContain('[too deep]');
  });
});

describe('progress and metadata', () => {
  it('cleans progress', () => {
    expect(encodeProgress({ at: 1n })).toEqual({ text: '{"at":"1"}' });
    expect(encodeProgress('x'.repeat(20_000)).replaced).toBe('larger than 16000 bytes');
  });

  it('refuses metadata that is not JSON, or too large, naming the option', () => {
    expect(encodeMetadata('x', undefined)).toBeUndefined();
    expect(encodeMetadata('x', { trace: 'a' })).toBe('{"trace":"a"}');
    const refusal = { code: 'INVALID_ENQUEUE_OPTION', option: 'metadata' };
    expect(() => encodeMetadata('x', { at: new Date(0) })).toThrow(expect.objectContaining(refusal));
    expect(() => encodeMetadata('x', 'x'.repeat(16_001))).toThrow(expect.objectContaining(refusal));
  });
});
