// Two nodes answer together: this device drafts, the other one checks, and what is said is the other one's answer.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, events_of, model as test_model, target } from './molly.mjs';

const nano = path.resolve(import.meta.dirname, '../../models/molly-nano.gguf');
const engine = { deterministic: true, answer_tokens_default: 48 };

let studio;  // the node that answers
let other;  // one with another vocabulary
let mock;  // one that is no Molly
let molly;

async function key_file(node) {
    const key = await node.make_key({ member: 'desk', lowest_class: 'public' });
    const file = path.join(node.folder, 'desk.key');
    fs.writeFileSync(file, key, { mode: 0o600 });
    return file;
}

before(async () => {
    studio = await Molly.start({ engine: { ...engine, model: test_model } });
    other = await Molly.start({ engine: { ...engine, model: nano } });
    mock = await MockUpstream.start({ name: 'mock' });
    const at = async (name, node, drafts) => target(name, 'T1', node.port, { model: 'local', drafts, key_file: await key_file(node) });
    molly = await Molly.start({
        engine: { ...engine, model: test_model },
        targets: [
            await at('studio', studio, 'always'),
            await at('measured', studio, 'measured'),
            await at('plain', studio, 'off'),
            await at('foreign', other, 'always'),
            target('mock', 'T1', mock.port, { drafts: 'always' }),
        ],
        extra: '[routing]\nfailures_to_open = 100\n',
    });
});
after(async () => {
    for (const node of [molly, studio, other])
        await node?.remove();
    await mock?.stop();
});

async function ask(model, content, fields = {}) {
    const reply = await molly.chat(content, { model, temperature: 0, max_tokens: 48, ...fields });
    assert.equal(reply.status, 200, reply.text);
    const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
    return { text: reply.json?.choices[0].message.content, body: reply.text, usage: reply.json?.usage, trace, attempt: trace.attempts[0] };
}

const questions = ['Parlami di Roma.', 'What is the sea?', 'Raccontami una storia di mare e di vento.'];

describe('with the same model on both nodes', () => {
    test('the answer is the other node\'s, word for word, and drafts were accepted', async () => {
        for (const question of questions) {
            const plain = await ask('plain', question);
            const together = await ask('studio', question);
            assert.equal(together.text, plain.text);
            assert.deepEqual(together.usage, plain.usage);
            assert.equal(plain.attempt.drafted, undefined);
            assert.ok(together.attempt.drafted > 0, JSON.stringify(together.attempt));
            assert.ok(together.attempt.accepted > together.attempt.drafted / 2, JSON.stringify(together.attempt));
            assert.ok(together.attempt.bytes_sent > plain.attempt.bytes_sent, 'drafts left this device uncounted');
            assert.equal(together.trace.attempts.length, 1);
        }
    });

    test('streams too, with one record of each request on either node', async () => {
        const traces = async (node) => (await node.fetch('/molly/v1/traces?limit=1000')).json.traces.length;
        const before_there = await traces(studio);
        const plain = await ask('plain', questions[0]);
        const { body, attempt } = await ask('studio', questions[0], { stream: true });
        const frames = events_of(body);
        assert.equal(frames.at(-1).data, '[DONE]');
        const text = frames.slice(0, -1).map((frame) => JSON.parse(frame.data).choices?.[0]?.delta?.content ?? '').join('');
        assert.equal(text, plain.text);
        assert.ok(attempt.accepted > 0);
        assert.equal(await traces(studio), before_there + 2);
        const health = (await studio.fetch('/molly/v1/health')).json;
        assert.ok(health.speculation.accepted > 0, JSON.stringify(health));
    });

    test('where it is measured, the answer is the same whatever is found', async () => {
        for (let i = 0; i < 3; ++i)
            for (const question of questions)
                assert.equal((await ask('measured', question)).text, (await ask('plain', question)).text);
    });

    test('answers in a shape that was asked for keep it', async () => {
        const fields = { response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema: {
            type: 'object', properties: { city: { enum: ['Roma', 'Milano'] }, size: { type: 'integer', minimum: 0, maximum: 9 } }, required: ['city', 'size'], additionalProperties: false } } } };
        const together = await ask('studio', questions[0], fields);
        assert.equal(together.text, (await ask('plain', questions[0], fields)).text);
        assert.match(JSON.parse(together.text).city, /Roma|Milano/);
    });
});

describe('with a node that cannot', () => {
    test('another vocabulary: it answers alone', async () => {
        const { text, attempt } = await ask('foreign', 'Come si dice 45 in inglese?');
        assert.equal(text, 'forty-five');
        assert.equal(attempt.drafted, undefined);
    });

    test('no Molly: it answers alone, and gets the request once', async () => {
        for (const script of [{ status: 404 }, { text: ['nonsense'] }]) {
            mock.reset();
            mock.next(script, { text: ['hello'] });
            const { text, attempt } = await ask('mock', 'Ciao-canary');
            assert.equal(text, 'hello');
            assert.equal(attempt.drafted, undefined);
            assert.deepEqual(mock.calls.map((call) => call.path), ['/molly/v1/verify', '/v1/chat/completions']);
            assert.ok(!mock.calls[0].body.includes('canary'), 'the request left before anybody said that it is wanted');
        }
    });
});

test('the endpoint says what is wrong', async () => {
    const verify = (body, key) => studio.fetch('/molly/v1/verify', { body, key });
    assert.equal((await verify({ vocabulary: 'x' }, '')).status, 401);
    const foreign = await verify({ vocabulary: 'x' });
    assert.equal(foreign.status, 409);
    assert.match(foreign.json.error.message, /same family/);
    const { vocabulary } = (await studio.fetch('/molly/v1/health')).json.speculation;
    const opened = await verify({ vocabulary });
    assert.equal(opened.status, 200, opened.text);
    const { session } = opened.json;
    assert.equal((await verify({ session, draft: [1_000_000_000] })).status, 400);
    assert.equal((await verify({ session, draft: Array(33).fill(1) })).status, 400);
    assert.equal((await verify({ session, from: 5 })).status, 400);
    assert.equal((await verify({ session: 'ver_1' })).status, 404);
});

test('a node that dies half-way ends the answer as always: nothing is said twice', async () => {
    const question = 'Raccontami una storia molto lunga.';
    const long = { max_tokens: 1500 };
    const whole = (await ask('plain', question, long)).text;
    const reply = await fetch(`${molly.url}/v1/chat/completions`, {
        method: 'POST', headers: { authorization: `Bearer ${molly.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'studio', stream: true, temperature: 0, ...long, messages: [{ role: 'user', content: question }] }),
    });
    assert.equal(reply.status, 200);
    let body = '';
    const decoder = new TextDecoder();
    for await (const piece of reply.body) {
        if (body === '')
            await studio.kill();
        body += decoder.decode(piece, { stream: true });
    }
    const frames = events_of(body);
    assert.equal(frames.at(-1).data, '[DONE]');
    const chunks = frames.slice(0, -1).map((frame) => JSON.parse(frame.data));
    assert.ok(chunks.some((chunk) => chunk.error), 'the answer was whole before the node died');
    const said = chunks.map((chunk) => chunk.choices?.[0]?.delta?.content ?? '').join('');
    assert.ok(said.length < whole.length && whole.startsWith(said), `said ${said}`);
    const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
    assert.equal(trace.outcome, 'truncated');
    assert.equal(trace.attempts.length, 1);
});
