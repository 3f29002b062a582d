// The `@anthropic-ai/sdk` client on /v1/messages.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, events_of, target, until } from './molly.mjs';

let molly;
let studio;
let claude;
let client;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    claude = await MockUpstream.start({ name: 'claude-at-home' });
    molly = await Molly.start({
        targets: [
            target('studio', 'T1', studio.port, { quality: 0.1 }),
            target('claude-at-home', 'T1', claude.port, { quality: 0.1, dialect: 'anthropic', url: `http://127.0.0.1:${claude.port}` }),
        ],
    });
    client = new Anthropic({ apiKey: molly.key, baseURL: molly.url, maxRetries: 0 });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
    await claude?.stop();
});

const messages = [{ role: 'user', content: 'Ciao, how are you today?' }];
const weather = {
    name: 'get_weather', description: 'Weather in a city',
    input_schema: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
};

describe('messages', () => {
    test('answers, and says in headers who answered', async () => {
        const { data, response } = await client.messages.create({ model: 'local', max_tokens: 12, system: 'Be kind.', messages }).withResponse();
        assert.equal(data.type, 'message');
        assert.equal(data.role, 'assistant');
        assert.ok(data.id.startsWith('msg_'));
        assert.equal(data.content[0].type, 'text');
        assert.ok(data.content[0].text.length > 0);
        assert.ok(['end_turn', 'max_tokens'].includes(data.stop_reason));
        assert.ok(data.usage.input_tokens > 0 && data.usage.output_tokens > 0);
        assert.equal(response.headers.get('x-molly-tier'), 'T0');
        assert.ok(await molly.receipt(response.headers.get('x-molly-receipt')));
    });

    test('streams the same words as the whole answer', async () => {
        const request = { model: 'local', max_tokens: 24, temperature: 0, messages };
        const whole = await client.messages.create(request);
        const stream = client.messages.stream(request);
        const types = [];
        stream.on('streamEvent', (event) => types.push(event.type));
        const streamed = await stream.finalMessage();
        assert.deepEqual(streamed.content.map(({ type, text }) => ({ type, text })), whole.content.map(({ type, text }) => ({ type, text })));
        assert.equal(streamed.stop_reason, whole.stop_reason);
        assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
        assert.equal(types[0], 'message_start');
        assert.deepEqual(types.slice(-3), ['content_block_stop', 'message_delta', 'message_stop']);
    });

    test('a claude name means auto', async () => {
        const data = await client.messages.create({ model: 'claude-sonnet-4-5', max_tokens: 4, messages });
        assert.equal(data.stop_reason, 'max_tokens');
        assert.equal(data.usage.output_tokens, 4);
    });

    test('stops at a sequence', async () => {
        const request = { model: 'local', max_tokens: 24, temperature: 0, messages };
        const [{ text }] = (await client.messages.create(request)).content;
        const sequence = text.slice(6, 12);
        const stopped = await client.messages.create({ ...request, stop_sequences: [sequence] });
        assert.equal(stopped.content[0]?.text ?? '', text.slice(0, text.indexOf(sequence)));
        assert.equal(stopped.stop_reason, 'stop_sequence');
        assert.equal(stopped.stop_sequence, sequence);
    });

    test('takes a bearer token as well', async () => {
        const bearer = new Anthropic({ apiKey: null, authToken: molly.key, baseURL: molly.url, maxRetries: 0 });
        assert.equal((await bearer.messages.create({ model: 'local', max_tokens: 4, messages })).type, 'message');
    });
});

describe('tools', () => {
    for (const name of ['studio', 'claude-at-home'])
        for (const stream of [false, true])
            test(`a call and its result go through ${name} unharmed (stream ${stream})`, async () => {
                const upstream = name === 'studio' ? studio : claude;
                upstream.reset();
                upstream.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma "centro"' } }] });
                const request = { model: name, max_tokens: 60, messages, tools: [weather], tool_choice: { type: 'any' } };
                const message = stream ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
                assert.equal(message.stop_reason, 'tool_use');
                const call = message.content.find((block) => block.type === 'tool_use');
                assert.equal(call.name, 'get_weather');
                assert.deepEqual(call.input, { city: 'Roma "centro"' });
                const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Sunny' }] };
                const end = await client.messages.create({
                    ...request, tool_choice: { type: 'auto' }, messages: [...messages, { role: 'assistant', content: message.content }, result],
                });
                assert.equal(end.content[0].text, `Hello from ${name}`);
                assert.ok(upstream.calls[1].body.includes('Sunny'));
                assert.ok(upstream.calls[1].body.includes(call.id));
            });

    test('the engine calls a tool that must be called', async () => {
        const message = await client.messages.create({ model: 'local', max_tokens: 150, temperature: 0, messages, tools: [weather], tool_choice: { type: 'tool', name: 'get_weather' } });
        const call = message.content.find((block) => block.type === 'tool_use');
        assert.equal(message.stop_reason, 'tool_use');
        assert.equal(typeof call.input.city, 'string');
    });
});

describe('errors', () => {
    test('in the shape of the dialect', async () => {
        const wrong = new Anthropic({ apiKey: `molly-${'Z'.repeat(40)}`, baseURL: molly.url, maxRetries: 0 });
        const cases = [
            [() => wrong.messages.create({ model: 'local', max_tokens: 4, messages }), Anthropic.AuthenticationError, 'authentication_error'],
            [() => client.messages.create({ model: 'nobody', max_tokens: 4, messages }), Anthropic.NotFoundError, 'not_found_error'],
            [() => client.messages.create({ model: 'local', messages }), Anthropic.BadRequestError, 'invalid_request_error'],
            [() => client.messages.create({ model: 'local', max_tokens: 4, messages: [] }), Anthropic.BadRequestError, 'invalid_request_error'],
        ];
        for (const [ask, type, name] of cases)
            await assert.rejects(ask, (error) => {
                assert.ok(error instanceof type, String(error));
                assert.equal(error.error.type, 'error');
                assert.equal(error.error.error.type, name);
                assert.ok(error.error.error.message.length > 0);
                return true;
            });
    });

    test('context that does not fit is 400 with both numbers', async () => {
        const long = [{ role: 'user', content: 'and so it goes on '.repeat(12000) }];
        await assert.rejects(client.messages.create({ model: 'local', max_tokens: 4, messages: long }), { status: 400 });
    });

    test('an upstream that dies mid-stream is an error event, then the end (case 4)', async () => {
        studio.reset();
        studio.next({ text: ['one ', 'two ', 'three '], die_after: 2 });
        const reply = await molly.fetch('/v1/messages', { body: { model: 'studio', max_tokens: 60, messages, stream: true } });
        const frames = events_of(reply.text);
        assert.equal(frames.at(-1).event, 'error');
        assert.equal(JSON.parse(frames.at(-1).data).type, 'error');
        assert.ok(!frames.some((frame) => frame.event === 'message_stop'));
        studio.next({ text: ['one ', 'two ', 'three '], die_after: 2 });
        await assert.rejects(client.messages.stream({ model: 'studio', max_tokens: 60, messages }).finalMessage());
        assert.equal((await molly.trace(reply.headers.get('x-molly-receipt'))).outcome, 'truncated');
    });
});

test('a caller that leaves is noticed upstream', async () => {
    studio.reset();
    studio.next({ text: ['one ', 'two ', 'three '], hang_after: 2 });
    const stream = client.messages.stream({ model: 'studio', max_tokens: 60, messages });
    stream.on('text', (text) => text === 'two ' && stream.abort());
    await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
    await until(() => studio.calls[0].closed, 'the upstream is left too', 2000);
});
