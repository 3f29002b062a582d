// Vercel's `ai` with `@ai-sdk/openai-compatible`.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from 'ai';
import { z } from 'zod';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

let molly;
let studio;
let provider;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.1 })] });
    provider = createOpenAICompatible({
        name: 'molly', baseURL: `${molly.url}/v1`, apiKey: molly.key, includeUsage: true, supportsStructuredOutputs: true,
    });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

const prompt = 'Ciao, how are you today?';
const weather = tool({
    description: 'Weather in a city', inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `Sunny in ${city}`,
});

describe('text', () => {
    test('generateText', async () => {
        const { text, usage, finishReason, response } = await generateText({ model: provider('local'), prompt, maxOutputTokens: 24, temperature: 0, maxRetries: 0 });
        assert.ok(text.length > 0);
        assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
        assert.ok(['stop', 'length'].includes(finishReason));
        assert.equal(response.headers['x-molly-tier'], 'T0');
    });

    test('streamText says the same, with usage', async () => {
        const request = { model: provider('local'), prompt, maxOutputTokens: 24, temperature: 0, maxRetries: 0 };
        const { text } = await generateText(request);
        const streamed = streamText(request);
        let joined = '';
        for await (const piece of streamed.textStream)
            joined += piece;
        assert.equal(joined, text);
        assert.ok((await streamed.usage).outputTokens > 0);
    });

    test('an aborted stream is noticed upstream', async () => {
        studio.reset();
        studio.next({ text: ['one ', 'two ', 'three '], hang_after: 2 });
        const abort = new AbortController();
        const streamed = streamText({ model: provider('studio'), prompt, abortSignal: abort.signal, maxRetries: 0, onError() {} });
        for await (const part of streamed.fullStream)
            if (part.type === 'text-delta' && part.text === 'two ')
                abort.abort();
        await until(() => studio.calls[0].closed, 'the upstream is left too', 2000);
    });

    test('an upstream that dies is no finished answer (case 4)', async () => {
        studio.reset();
        studio.next({ text: ['one ', 'two ', 'three '], die_after: 2 });
        const parts = [];
        for await (const part of streamText({ model: provider('studio'), prompt, maxRetries: 0, onError() {} }).fullStream)
            parts.push(part.type);
        assert.ok(parts.includes('error'), parts.join());
    });
});

describe('objects', () => {
    const schema = z.object({ ok: z.boolean(), city: z.enum(['Roma', 'Milano']), count: z.number().int() });

    test('generateObject', async () => {
        const { object } = await generateObject({ model: provider('local'), prompt, schema, maxOutputTokens: 120, maxRetries: 0 });
        assert.ok(schema.safeParse(object).success, JSON.stringify(object));
    });

    test('streamObject', async () => {
        const streamed = streamObject({ model: provider('local'), prompt, schema, maxOutputTokens: 120, maxRetries: 0 });
        let last;
        for await (const partial of streamed.partialObjectStream)
            last = partial;
        assert.ok(schema.safeParse(last).success, JSON.stringify(last));
    });
});

describe('tools', () => {
    for (const streamed of [false, true])
        test(`two steps with a tool (stream ${streamed})`, async () => {
            studio.reset();
            studio.next({ tool_calls: [{ name: 'weather', arguments: { city: 'Roma' } }] });
            const request = { model: provider('studio'), prompt, tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 };
            const text = streamed ? await streamText(request).text : (await generateText(request)).text;
            assert.equal(text, 'Hello from studio');
            assert.equal(studio.calls.length, 2);
            assert.ok(studio.calls[1].body.includes('Sunny in Roma'));
        });
});

test('embedMany', async () => {
    const { embeddings, usage } = await embedMany({ model: provider.embeddingModel('local'), values: ['Il gatto', 'A train'], maxRetries: 0 });
    assert.equal(embeddings.length, 2);
    assert.ok(usage.tokens > 0);
});

test('errors carry their status', async () => {
    await assert.rejects(generateText({ model: provider('nobody'), prompt, maxRetries: 0 }), { statusCode: 404 });
    const stranger = createOpenAICompatible({ name: 'molly', baseURL: `${molly.url}/v1`, apiKey: 'wrong' });
    await assert.rejects(generateText({ model: stranger('local'), prompt, maxRetries: 0 }), { statusCode: 401 });
});
