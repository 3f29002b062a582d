// What upstreams do wrong, and what reaches the caller: the numbered cases of real faults, end to end.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import OpenAI from 'openai';
import { assert_contract } from './contract.mjs';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, events_of, target } from './molly.mjs';

let molly;
let client;
const mocks = {};
const dialects = ['openai', 'anthropic', 'ollama'];

before(async () => {
    const targets = [];
    for (const dialect of dialects) {
        mocks[dialect] = await MockUpstream.start({ name: dialect });
        const { port } = mocks[dialect];
        const url = `http://127.0.0.1:${port}${dialect === 'openai' ? '/v1' : ''}`;
        targets.push(target(`up-${dialect}`, 'T1', port, { dialect, url, quality: 0.1, idle_timeout_ms: 1500, price_input: 10, price_cached: 1, price_answer: 100 }));
    }
    // A target of its own, because it is left alone for as long as it asked.
    targets.push(target('up-busy', 'T1', mocks.openai.port, { quality: 0.1 }));
    molly = await Molly.start({ targets, extra: '[routing]\nfailures_to_open = 100\n' });
    client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
});
after(async () => {
    await molly?.remove();
    for (const mock of Object.values(mocks))
        await mock.stop();
});
beforeEach(() => Object.values(mocks).forEach((mock) => mock.reset()));

const messages = [{ role: 'user', content: 'Ciao' }];
const family = '\u{1F468}\u200D\u{1F469}\u200D\u{1F467}';

async function stream_of(model, fields = {}) {
    const reply = await molly.chat('Ciao', { model, stream: true, ...fields });
    assert.equal(reply.status, 200, reply.text);
    const frames = events_of(reply.text);
    assert.equal(frames.at(-1).data, '[DONE]', 'the stream has no proper end');
    const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.data));
    const text = chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? '').join('');
    return { chunks, text, trace: await molly.trace(reply.headers.get('x-molly-receipt')) };
}

for (const dialect of dialects)
    describe(`behind an upstream that speaks ${dialect}`, () => {
        const model = `up-${dialect}`;

        test('characters that segments cut arrive whole (case 1)', async () => {
            const text = ['perch\u00e9 ', `\u{1F600} ${family}`, ' fine'];
            mocks[dialect].next({ text, cut_bytes: 1 }, { text });
            const streamed = await stream_of(model);
            assert.equal(streamed.text, text.join(''));
            const whole = await client.chat.completions.create({ model, messages });
            assert.equal(whole.choices[0].message.content, text.join(''));
        });

        const deaths = {
            'dies after two pieces': { die_after: 2 },
            'falls silent': { hang_after: 2 },
            'sends a malformed chunk': { malformed_after: 2 },
            'sends an error frame': { error_after: 2 },
            'ends without its terminator': { unended: true },
        };
        for (const [how, script] of Object.entries(deaths))
            test(`an upstream that ${how} is an error, then the end (case 4)`, async () => {
                mocks[dialect].next({ text: ['one ', 'two ', 'three '], ...script });
                const { chunks, text, trace } = await stream_of(model);
                assert.equal(chunks.filter((chunk) => chunk.error).length, 1);
                assert.ok(chunks.at(-1).error, 'the error comes last');
                assert_contract('ErrorResponse', chunks.at(-1));
                assert.ok('one two three '.startsWith(text), `another model's text was appended: ${text}`);
                assert.ok(!chunks.some((chunk) => chunk.choices?.[0]?.finish_reason), 'death looks like success');
                assert.equal(trace.outcome, 'truncated');
                assert.equal(trace.attempts.length, 1);
                assert.equal(mocks[dialect].calls.length, 1);
            });

        test('the client raises it', async () => {
            mocks[dialect].next({ text: ['one ', 'two ', 'three '], die_after: 2 });
            await assert.rejects(async () => {
                for await (const chunk of await client.chat.completions.create({ model, messages, stream: true }))
                    assert.ok(chunk);
            });
        });

        test('usage is taken as it is reported', async () => {
            const usage = { prompt_tokens: 1000, completion_tokens: 7, total_tokens: 1007 };
            mocks[dialect].next({ usage, usage_in: 'own' });
            const { trace } = await stream_of(model);
            assert.equal(trace.usage.prompt_tokens, 1000);
            assert.equal(trace.usage.answer_tokens, 7);
            assert.equal(trace.usage.source, 'upstream');
        });

        test('before the first byte, another permitted target takes over', async () => {
            mocks[dialect].next({ status: 503 });
            const reply = await molly.chat('Ciao', { model: 'auto', max_tokens: 4, molly: { mode: 'quality' } });
            assert.equal(reply.status, 200, reply.text);
        });
    });

describe('usage coming in (case 6)', () => {
    const usage = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010, prompt_tokens_details: { cached_tokens: 900 } };
    // 100 at 10, 900 at 1 and 10 at 100, per million
    const cost = (100 * 10 + 900 * 1 + 10 * 100) / 1e6;

    for (const usage_in of ['own', 'finish', 'middle'])
        test(`counts from the ${usage_in} chunk, cached tokens at their own price`, async () => {
            mocks.openai.next({ usage, usage_in });
            const { trace } = await stream_of('up-openai');
            assert.equal(trace.usage.prompt_tokens, 1000);
            assert.equal(trace.usage.cached_tokens, 900);
            assert.equal(trace.usage.source, 'upstream');
            assert.ok(Math.abs(Number(trace.cost) - cost) < 1e-9, `${trace.cost} is not ${cost}`);
        });

    test('counts itself when nothing is reported, and says so', async () => {
        mocks.openai.next({ usage_in: 'none' });
        const { trace } = await stream_of('up-openai');
        assert.equal(trace.usage.source, 'estimate');
        assert.ok(trace.usage.answer_tokens > 0);
    });

    test('counts in a whole answer too', async () => {
        mocks.openai.next({ usage });
        const { usage: told } = await client.chat.completions.create({ model: 'up-openai', messages });
        assert.equal(told.prompt_tokens, 1000);
        assert.equal(told.prompt_tokens_details.cached_tokens, 900);
    });
});

describe('refusals', () => {
    test('429 with Retry-After reaches the caller when nobody else may answer', async () => {
        mocks.openai.next({ status: 429, headers: { 'retry-after': '7' }, body: { error: { message: 'slow down', type: 'rate_limit' } } });
        const reply = await molly.chat('Ciao', { model: 'up-busy' });
        assert.equal(reply.status, 429, reply.text);
        assert.equal(reply.headers.get('retry-after'), '7');
        assert.equal(mocks.openai.calls.length, 1, 'no blind retry');
    });

    test('an upstream that quotes its key is not passed on (case 25)', async () => {
        const key = `sk-live-${'k9'.repeat(20)}`;
        mocks.openai.next({ status: 401, body: { error: { message: `Incorrect API key provided: ${key}`, type: 'invalid_request_error' } } });
        const reply = await molly.chat('Ciao', { model: 'up-openai' });
        assert.ok(reply.status >= 500, String(reply.status));
        assert.ok(!reply.text.includes(key.slice(0, 12)) && !reply.text.includes(key.slice(-5)), reply.text);
        assert.ok(!molly.log.includes(key.slice(-8)));
    });

    test('a 400 of the upstream is the caller\'s to mend', async () => {
        mocks.openai.next({ status: 400, body: { error: { message: 'bad tool schema', type: 'invalid_request_error', param: 'tools' } } });
        const reply = await molly.chat('Ciao', { model: 'up-openai' });
        assert.equal(reply.status, 400, reply.text);
        assert.equal(mocks.openai.calls.length, 1);
    });
});
