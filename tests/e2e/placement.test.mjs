// Where content goes: labels, keys and rules against real sockets, with a canary in every request.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import OpenAI from 'openai';
import { MockUpstream, make_certificate } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

let molly;
let studio;
let cloud;
let folder;
let open_key;

const rules = `
[routing]
mode = "quality"
failures_to_open = 2
open_for_ms = 600
[[labels.rule]]
name = "payroll"
phrases = ["busta paga"]
class = "secret"
[[policy.rule]]
name = "cloud-for-the-press"
members = ["press"]
at_most = "standard"
permit_t3 = true
`;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-placement-'));
    const tls = make_certificate(folder);
    cloud = await MockUpstream.start({ name: 'cloud', tls });
    molly = await Molly.start({
        targets: [
            target('studio', 'T1', studio.port, { quality: 0.9, jurisdiction: 'IT' }),
            target('cloud', 'T3', cloud.port, { url: `https://localhost:${cloud.port}/v1`, ca_file: tls.file, quality: 1, controller: 'somebody' }),
        ],
        engine: { quality: 0.2 },
        extra: rules,
    });
    open_key = await molly.make_key({ member: 'open', lowest_class: 'public' });
});
after(async () => {
    const never = cloud.requests.length === 0;
    await molly?.remove();
    await studio?.stop();
    await cloud?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
    assert.ok(never, 'something reached the T3 target');
});
beforeEach(() => studio.reset());

const canary = () => `canary-${randomBytes(9).toString('hex')}`;
const tier_of = (reply) => reply.headers.get('x-molly-tier');

/** One request on every face, `word` somewhere in it; gives the replies. */
function on_every_face(word, molly_fields, model = 'auto') {
    const messages = [{ role: 'user', content: word }];
    const faces = {
        '/v1/chat/completions': { model, messages, max_tokens: 4 },
        '/v1/completions': { model, prompt: word, max_tokens: 4 },
        '/v1/responses': { model, input: word, max_output_tokens: 16 },
        '/v1/embeddings': { model, input: [word] },
        '/v1/messages': { model, messages, max_tokens: 4 },
        '/api/chat': { model, messages, stream: false, options: { num_predict: 4 } },
        '/api/generate': { model, prompt: word, stream: false, options: { num_predict: 4 } },
        '/api/embed': { model, input: word },
    };
    return Promise.all(Object.entries(faces).map(async ([where, body]) => {
        const reply = await molly.fetch(where, { body: { ...body, ...(molly_fields && { molly: molly_fields }) } });
        return { where, reply };
    }));
}

describe('classes', () => {
    test('what nobody labelled is private: T1 when it scores better, and never T3', async () => {
        const word = canary();
        const reply = await molly.chat(word);
        assert.equal(reply.headers.get('x-molly-target'), 'studio');
        assert.equal(tier_of(reply), 'T1');
        assert.ok(studio.saw(word));
        assert.ok(!cloud.saw(word));
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.equal(trace.label.class, 'private');
        assert.deepEqual(trace.decision.permitted, ['T0', 'T1']);
    });

    test('secret stays on this device, on every face', async () => {
        const word = canary();
        for (const { where, reply } of await on_every_face(word, { class: 'secret' })) {
            assert.equal(reply.status, 200, `${where}: ${reply.text}`);
            assert.equal(tier_of(reply), 'T0', where);
        }
        assert.ok(!studio.saw(word));
        assert.ok(!cloud.saw(word));
    });

    test('a target that the label forbids cannot be named either', async () => {
        const word = canary();
        for (const { where, reply } of await on_every_face(word, { class: 'secret' }, 'studio'))
            assert.equal(reply.status, 403, `${where}: ${reply.text}`);
        for (const { where, reply } of await on_every_face(word, undefined, 'cloud'))
            assert.equal(reply.status, 403, `${where}: ${reply.text}`);
        assert.equal(studio.calls.length, 0);
    });

    test('T3 is denied to whom no rule permits it, and it is said why', async () => {
        const word = canary();
        const named = await molly.chat(word, { key: open_key, model: 'cloud', molly: { class: 'standard' } });
        assert.equal(named.status, 403, named.text);
        assert.match(named.json.error.message, /no rule permits it/);
        const any = await molly.chat(word, { key: open_key, molly: { class: 'public', explain: true } });
        assert.equal(any.headers.get('x-molly-target'), 'studio');
        const trace = await molly.trace(any.headers.get('x-molly-receipt'));
        const excluded = trace.decision.candidates.find((candidate) => candidate.target === 'cloud');
        assert.ok(excluded.excluded_by, JSON.stringify(excluded));
        assert.ok(!cloud.saw(word));
    });

    test('a class below what the key may declare is refused; a key that may is recorded', async () => {
        const refused = await molly.chat(canary(), { key: await molly.make_key({ member: 'plain' }), molly: { class: 'standard' } });
        assert.equal(refused.status, 403, refused.text);
        assert.equal(refused.json.error.code, 'class_below_key');
        const lowered = await molly.chat(canary(), { key: open_key, molly: { class: 'standard' } });
        assert.equal(lowered.status, 200);
        const trace = await molly.trace(lowered.headers.get('x-molly-receipt'));
        assert.equal(trace.label.class, 'standard');
        assert.equal(trace.declassified, true);
    });

    test('a rule raises the whole conversation, whichever turn it matches (case 30)', async () => {
        const word = canary();
        const turns = [
            [{ role: 'user', content: `La busta paga di ${word}` }, { role: 'assistant', content: 'Sì.' }, { role: 'user', content: 'Grazie' }],
            [{ role: 'system', content: `Busta  paga? busta paga ${word}` }, { role: 'user', content: 'Ciao' }],
            [{ role: 'user', content: 'x' }, { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: JSON.stringify({ of: `busta paga ${word}` }) } }] },
                { role: 'tool', tool_call_id: 'c', content: 'ok' }],
            [{ role: 'user', content: 'x' }, { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
                { role: 'tool', tool_call_id: 'c', content: `busta paga ${word}` }],
        ];
        for (const messages of turns) {
            const reply = await molly.fetch('/v1/chat/completions', { key: open_key, body: { model: 'auto', messages, max_tokens: 4, molly: { class: 'public' } } });
            assert.equal(tier_of(reply), 'T0', reply.text);
        }
        const metadata = await molly.chat('x', { metadata: { note: `busta paga ${word}` } });
        assert.equal(tier_of(metadata), 'T0');
        const embedding = await molly.fetch('/v1/embeddings', { body: { model: 'auto', input: ['x', `busta paga ${word}`] } });
        assert.equal(tier_of(embedding), 'T0');
        assert.ok(!studio.saw(word));
    });

    test('a label sticks to its conversation', async () => {
        const conversation = canary();
        assert.equal(tier_of(await molly.chat('uno', { molly: { class: 'secret', conversation } })), 'T0');
        assert.equal(tier_of(await molly.chat('due', { molly: { conversation } })), 'T0');
        const word = canary();
        const first = [{ role: 'user', content: word }];
        assert.equal(tier_of(await molly.fetch('/v1/chat/completions', { body: { model: 'auto', messages: first, max_tokens: 4, molly: { class: 'secret' } } })), 'T0');
        const longer = [...first, { role: 'assistant', content: 'Sì.' }, { role: 'user', content: 'E poi?' }];
        assert.equal(tier_of(await molly.fetch('/v1/chat/completions', { body: { model: 'auto', messages: longer, max_tokens: 4 } })), 'T0');
        assert.ok(!studio.saw(word));
    });
});

describe('residency and keys', () => {
    test('only a place that declares where it is may satisfy a residency', async () => {
        const inside = await molly.chat(canary(), { molly: { residency: ['IT'] } });
        assert.equal(inside.headers.get('x-molly-target'), 'studio', inside.text);
        const union = await molly.chat(canary(), { molly: { residency: ['EU'] } });
        assert.equal(union.headers.get('x-molly-target'), 'studio', union.text);
        const nowhere = await molly.chat(canary(), { molly: { residency: ['FR'] } });
        assert.equal(nowhere.status, 403, nowhere.text);
        assert.match(nowhere.json.error.message, /residency|FR/);
    });

    test('a key that may reach T0 only stays there', async () => {
        const word = canary();
        const key = await molly.make_key({ member: 'home', tiers: ['T0'] });
        assert.equal(tier_of(await molly.chat(word, { key })), 'T0');
        assert.equal((await molly.chat(word, { key, model: 'studio' })).status, 403);
        assert.ok(!studio.saw(word));
    });
});

describe('fallback', () => {
    test('goes on inside the permitted set, each target once, and records the attempts', async () => {
        studio.next({ status: 503 });
        const word = canary();
        const reply = await molly.chat(word);
        assert.equal(reply.headers.get('x-molly-target'), 'local', reply.text);
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.deepEqual(trace.attempts.map((attempt) => attempt.target), ['studio', 'local']);
        assert.ok(trace.attempts[0].failed);
        assert.equal(studio.calls.length, 1);
        assert.ok(!cloud.saw(word));
    });

    test('a target that is down is skipped, and used again when it is back', async () => {
        const { port } = studio;
        await studio.stop();
        for (let at = 0; at < 2; ++at)
            assert.equal((await molly.chat(canary())).headers.get('x-molly-target'), 'local');
        const skipped = await molly.chat(canary());
        const trace = await molly.trace(skipped.headers.get('x-molly-receipt'));
        assert.deepEqual(trace.attempts.map((attempt) => attempt.target), ['local'], 'the circuit is not open');
        const alone = await molly.chat(canary(), { model: 'studio' });
        assert.equal(alone.status, 503, alone.text);
        studio = await MockUpstream.start({ name: 'studio', port });
        await until(async () => (await molly.chat(canary())).headers.get('x-molly-target') === 'studio', 'studio is used again');
    });
});

describe('receipts', () => {
    test('say where every byte went, and never what it said', async () => {
        const word = canary();
        const reply = await molly.chat(word);
        const id = reply.headers.get('x-molly-receipt');
        const receipt = await molly.receipt(id);
        const text = JSON.stringify(receipt);
        assert.ok(text.includes('studio') && text.includes('T1') && text.includes(String(studio.port)), text);
        assert.ok(!text.includes(word));
        assert.ok(!JSON.stringify(await molly.trace(id)).includes(word));
    });

    test('the content is in no file of the data folder, nor in the log (case 34)', async () => {
        const word = canary();
        await on_every_face(word, { class: 'secret' });
        await molly.fetch('/v1/responses', { body: { model: 'studio', input: word } });
        const folders = [molly.data];
        while (folders.length > 0) {
            const folder = folders.pop();
            for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
                const file = path.join(folder, entry.name);
                if (entry.isDirectory())
                    folders.push(file);
                else if (entry.isFile())
                    assert.ok(!fs.readFileSync(file).includes(word), file);
            }
        }
        assert.ok(!molly.log.includes(word));
    });

    test('verify offline, and a changed one does not', async () => {
        await molly.stop();
        const sound = await molly.command('audit', 'verify', '--json');
        assert.equal(sound.status, 0, sound.stdout + sound.stderr);
        assert.ok(JSON.parse(sound.stdout).receipts > 20);
        const file = path.join(molly.folder, 'receipts.jsonl');
        assert.equal((await molly.command('audit', 'export', file)).status, 0);
        assert.equal((await molly.command('audit', 'verify', file)).status, 0);
        const text = fs.readFileSync(file, 'utf8');
        const forged = path.join(molly.folder, 'forged.jsonl');
        fs.writeFileSync(forged, text.replace('studio', 'stud10'));
        assert.notEqual((await molly.command('audit', 'verify', forged)).status, 0);
        await molly.launch();
    });
});

describe('a second node as T1', () => {
    let node;
    let first;
    before(async () => {
        node = await Molly.start();
        const key_file = path.join(node.folder, 'key');
        fs.writeFileSync(key_file, await node.make_key({ member: 'first' }), { mode: 0o600 });
        first = await Molly.start({ targets: [target('attic', 'T1', node.port, { model: 'local', quality: 0.9, key_file })], engine: { quality: 0.2 }, extra: '[routing]\nmode = "quality"\nopen_for_ms = 300\n' });
    });
    after(async () => {
        await first?.remove();
        await node?.remove();
    });

    test('answers when it scores better, and keeps a trace of its own', async () => {
        const client = new OpenAI({ apiKey: first.key, baseURL: `${first.url}/v1`, maxRetries: 0 });
        const { data, response } = await client.chat.completions
            .create({ model: 'auto', messages: [{ role: 'user', content: 'Ciao' }], max_tokens: 8 }).withResponse();
        assert.ok(data.choices[0].message.content.length > 0);
        assert.equal(response.headers.get('x-molly-target'), 'attic');
        assert.equal((await node.fetch('/molly/v1/traces')).json.traces.filter((trace) => trace.member === 'first').length, 1);
    });

    test('is skipped when the label forbids it, and when it is down', async () => {
        const reply = await first.chat('Ciao', { molly: { class: 'secret' } });
        assert.equal(reply.headers.get('x-molly-target'), 'local');
        await node.kill();
        assert.equal((await first.chat('Ciao')).headers.get('x-molly-target'), 'local');
    });
});
