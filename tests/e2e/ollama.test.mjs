// The `ollama` client on /api/*, with a key and, as it is used everywhere, without one.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Ajv from 'ajv/dist/2020.js';
import { Ollama } from 'ollama';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

let molly;
let studio;
let client;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    const targets = [target('studio', 'T1', studio.port, { quality: 0.1 })];
    molly = await Molly.start({ targets });
    const { id } = await molly.new_key({ member: 'ollama' });
    await molly.stop();
    await molly.launch({ targets, gateway: { ollama_key_id: id } });
    client = new Ollama({ host: molly.url });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

const messages = [{ role: 'user', content: 'Ciao, how are you today?' }];
const options = { temperature: 0, num_predict: 24 };

async function collect(stream) {
    const pieces = [];
    for await (const piece of stream)
        pieces.push(piece);
    assert.deepEqual(pieces.map((piece) => piece.done), pieces.map((_, at) => at === pieces.length - 1));
    return pieces;
}

describe('chat and generate', () => {
    test('chat, whole and streamed, says the same', async () => {
        const whole = await client.chat({ model: 'local', messages, options });
        assert.equal(whole.message.role, 'assistant');
        assert.ok(whole.message.content.length > 0);
        assert.equal(whole.done, true);
        assert.ok(['stop', 'length'].includes(whole.done_reason));
        assert.ok(whole.prompt_eval_count > 0 && whole.eval_count > 0 && whole.total_duration > 0);
        assert.ok(!Number.isNaN(Date.parse(whole.created_at)));
        const pieces = await collect(await client.chat({ model: 'local', messages, options, stream: true }));
        assert.equal(pieces.map((piece) => piece.message.content).join(''), whole.message.content);
        assert.equal(pieces.at(-1).done_reason, whole.done_reason);
        assert.equal(pieces.at(-1).eval_count, whole.eval_count);
    });

    test('generate, whole and streamed, says the same', async () => {
        const whole = await client.generate({ model: 'local', prompt: 'Il gatto', options });
        assert.ok(whole.response.length > 0);
        const pieces = await collect(await client.generate({ model: 'local', prompt: 'Il gatto', options, stream: true }));
        assert.equal(pieces.map((piece) => piece.response).join(''), whole.response);
    });

    test('keeps to a format', async () => {
        const format = { type: 'object', additionalProperties: false, required: ['ok', 'n'], properties: { ok: { type: 'boolean' }, n: { type: 'integer' } } };
        const { message } = await client.chat({ model: 'local', messages, format, options: { num_predict: 120 } });
        assert.ok(new Ajv().compile(format)(JSON.parse(message.content)), message.content);
    });

    test('stops, counts and repeats itself with a seed', async () => {
        const plain = (await client.chat({ model: 'local', messages, options })).message.content;
        const stop = plain.slice(8, 13);
        const stopped = await client.chat({ model: 'local', messages, options: { ...options, stop: [stop] } });
        assert.equal(stopped.message.content, plain.slice(0, plain.indexOf(stop)));
        const short = await client.chat({ model: 'local', messages, options: { num_predict: 3 } });
        assert.equal(short.done_reason, 'length');
        assert.equal(short.eval_count, 3);
        const seeded = { temperature: 1.2, seed: 5, num_predict: 16 };
        const one = await client.chat({ model: 'local', messages, options: seeded });
        assert.equal((await client.chat({ model: 'local', messages, options: seeded })).message.content, one.message.content);
    });

    for (const stream of [false, true])
        test(`calls a tool and takes its result back (stream ${stream})`, async () => {
            studio.reset();
            studio.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma' } }] });
            const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }];
            const request = { model: 'studio', messages, tools };
            const reply = stream
                ? (await collect(await client.chat({ ...request, stream: true }))).find((piece) => piece.message.tool_calls?.length)
                : await client.chat(request);
            const { name, arguments: given } = reply.message.tool_calls[0].function;
            assert.equal(name, 'get_weather');
            assert.deepEqual(given, { city: 'Roma' });
            const end = await client.chat({ ...request, messages: [...messages, reply.message, { role: 'tool', content: 'Sunny', tool_name: 'get_weather' }] });
            assert.equal(end.message.content, 'Hello from studio');
            const sent = studio.calls[1].json.messages;
            assert.equal(sent.at(-1).role, 'tool');
            assert.equal(sent.at(-1).content, 'Sunny');
            assert.equal(sent.at(-1).tool_call_id, sent.at(-2).tool_calls[0].id);
        });
});

describe('models', () => {
    test('lists, shows and tells its version', async () => {
        const { models } = await client.list();
        const local = models.find((model) => model.name.replace(/:latest$/, '') === 'local');
        assert.ok(local, JSON.stringify(models));
        assert.ok(local.size > 0 && local.digest.length >= 12 && local.details.format === 'gguf');
        const shown = await client.show({ model: 'local' });
        assert.ok(shown.details.family.length > 0);
        assert.ok(shown.capabilities.includes('completion'));
        assert.match((await client.version()).version, /^\d+\.\d+/);
    });

    test('takes the tag that clients add', async () => {
        assert.ok((await client.chat({ model: 'local:latest', messages, options })).message.content.length > 0);
    });

    test('embeds', async () => {
        const { embeddings } = await client.embed({ model: 'local', input: ['Il gatto', 'A train'] });
        assert.equal(embeddings.length, 2);
        assert.ok(Math.abs(Math.hypot(...embeddings[0]) - 1) < 1e-3);
        const { embedding } = await client.embeddings({ model: 'local', prompt: 'Il gatto' });
        assert.equal(embedding.length, embeddings[0].length);
    });
});

describe('errors', () => {
    test('are one sentence in `error`', async () => {
        await assert.rejects(client.chat({ model: 'nobody', messages }), { status_code: 404 });
        await assert.rejects(client.show({ model: 'nobody' }), { status_code: 404 });
        const raw = await molly.fetch('/api/chat', { key: '', body: { model: 'nobody', messages } });
        assert.equal(typeof raw.json.error, 'string');
        assert.equal((await molly.fetch('/api/chat', { key: '', body: { model: 'local' } })).status, 400);
    });

    test('a wrong key is refused although no key would do', async () => {
        const stranger = new Ollama({ host: molly.url, headers: { authorization: `Bearer molly-${'x'.repeat(40)}` } });
        await assert.rejects(stranger.chat({ model: 'local', messages }), { status_code: 401 });
        const known = new Ollama({ host: molly.url, headers: { authorization: `Bearer ${molly.key}` } });
        assert.ok((await known.chat({ model: 'local', messages, options })).done);
    });

    test('an upstream that dies mid-stream is an error line', async () => {
        studio.reset();
        studio.next({ text: ['one ', 'two ', 'three '], die_after: 2 });
        await assert.rejects(collect(await client.chat({ model: 'studio', messages, stream: true })));
    });
});

test('a caller that leaves is noticed upstream', async () => {
    studio.reset();
    studio.next({ text: ['one ', 'two ', 'three '], hang_after: 2 });
    const stream = await client.chat({ model: 'studio', messages, stream: true });
    await assert.rejects(async () => {
        for await (const piece of stream)
            if (piece.message.content === 'two ')
                stream.abort();
    });
    await until(() => studio.calls[0].closed, 'the upstream is left too', 2000);
});
