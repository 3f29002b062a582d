// Third parties: what must not leave does not, and what may leave leaves redacted and comes back restored.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { make_certificate, MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

const iban = 'IT60X0542811101000000123456';
const grouped = 'IT60 X054 2811 1010 0000 0123 456';
const mail = 'zoe.rossi@example.com';
const rules = `
[routing]
mode = "quality"
failures_to_open = 100
[[policy.rule]]
name = "cloud-for-standard"
at_most = "standard"
permit_t3 = true
[[policy.rule]]
name = "case-42"
conversations = ["anna/case-42"]
redacted_counts_as = "standard"
permit_t3 = true
`;

let molly, cloud, studio, anna, folder;

before(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-outside-'));
    const tls = make_certificate(folder);
    cloud = await MockUpstream.start({ name: 'cloud', tls });
    studio = await MockUpstream.start({ name: 'studio' });
    const studio_port = studio.port;
    await studio.stop();  // T1 is down
    const outside = { url: `https://localhost:${cloud.port}/v1`, ca_file: tls.file, controller: 'somebody' };
    molly = await Molly.start({
        targets: [
            target('studio', 'T1', studio_port, { quality: 0.8 }),
            target('cloud', 'T3', cloud.port, { ...outside, quality: 0.95 }),
            target('claude-like', 'T3', cloud.port, { ...outside, dialect: 'anthropic', quality: 0.1 }),
        ],
        engine: { quality: 0.2, sequences_max: 1 },
        extra: rules,
    });
    anna = await molly.make_key({ member: 'anna', lowest_class: 'standard', default_class: 'standard' });
});
after(async () => {
    await molly?.remove();
    await cloud?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => cloud.reset());

const openai = () => new OpenAI({ apiKey: anna, baseURL: `${molly.url}/v1`, maxRetries: 0 });
const conversation = (name, more = {}) => ({ molly: { conversation: name, ...more } });
/** The placeholders of a request, in their order. */
const placeholders = (record) => [...new Set(record.body.match(/\[[A-Z_]+_[0-9]+_[a-z0-9]{4}\]/g) ?? [])];
const nothing_of = (upstream, ...texts) => texts.forEach((text) => assert.ok(!upstream.saw(text), `it got ${text}`));

describe('T1 is down, T0 is busy, T3 is permitted for standard content', () => {
    test('an IBAN in the first turn keeps the conversation here, and the user is answered', async () => {
        const traces = [];
        const turn = async (content, more = {}) => {
            const reply = await molly.chat(content, { key: anna, max_tokens: 8, ...conversation('bank'), ...more });
            assert.equal(reply.status, 200, reply.text);
            assert.equal(reply.headers.get('x-molly-tier'), 'T0');
            traces.push(await molly.trace(reply.headers.get('x-molly-receipt')));
        };
        await turn(`My account is ${grouped}`);
        // The engine has one sequence, and somebody else's long answer takes it.
        const busy = molly.chat('a long story', { model: 'local', max_tokens: 400 });
        await turn('What should I do next?');
        await turn('And then?', { stream: true });
        await busy;
        for (const trace of traces) {
            assert.equal(trace.label.class, 'private');
            assert.equal(trace.decision.t3_closed, 'private_not_permitted');
            assert.equal(trace.target, 'local');
        }
        assert.equal(cloud.calls.length, 0);
        const embedded = await molly.fetch('/v1/embeddings', { key: anna, body: { model: 'auto', input: [grouped], ...conversation('bank') } });
        assert.notEqual(embedded.headers.get('x-molly-tier'), 'T3');
        assert.equal(cloud.calls.length, 0);
        // One usage record for each request, and nothing of the text in metrics, traces, receipts or the log.
        const listed = await molly.fetch('/molly/v1/traces?limit=50&member=anna');
        assert.equal(new Set(listed.json.traces.map((trace) => trace.id)).size, listed.json.traces.length);
        const records = [listed.text, (await molly.fetch('/metrics')).text, molly.log];
        for (const trace of traces)
            records.push(JSON.stringify(await molly.receipt(trace.id)));
        for (const record of records)
            for (const text of [grouped, iban, '0542811', '0123456'])
                assert.ok(!record.includes(text));
        const audit = await molly.command('audit', 'verify');
        assert.equal(audit.status, 0, audit.stdout + audit.stderr);
    });

    test('standard content without identifiers may go there', async () => {
        const reply = await molly.chat('Two and two?', { key: anna });
        assert.equal(reply.headers.get('x-molly-target'), 'cloud', reply.text);
    });

    test('an image goes to nobody outside', async () => {
        const content = [{ type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }];
        const reply = await molly.chat(content, { key: anna, model: 'cloud' });
        assert.equal(reply.status, 403, reply.text);
        assert.match(reply.json.error.message, /image, audio or a file/);
        assert.equal(cloud.calls.length, 0);
    });
});

describe('with a permit for the conversation', () => {
    const ask = `My account is ${iban}, mail ${mail}.`;

    test('the openai client reads the values in a stream; the third party got placeholders', async () => {
        cloud.next({ text: (record) => [...`Noted: ${placeholders(record).join(' and ')}. [IBAN_9_zzzz]`], cut_bytes: 7 });
        const stream = await openai().chat.completions.create({
            model: 'auto', stream: true, messages: [{ role: 'user', content: ask }], metadata: { note: mail }, user: 'anna-1', ...conversation('case-42'),
        });
        let text = '';
        for await (const chunk of stream)
            text += chunk.choices[0]?.delta?.content ?? '';
        assert.equal(text, `Noted: ${iban} and ${mail}. [IBAN_9_zzzz]`);
        assert.equal(cloud.calls.length, 1);
        nothing_of(cloud, iban, mail, 'zoe', '0542811', 'anna', 'case-42');
        assert.match(cloud.calls[0].body, /My account is \[IBAN_1_/);
    });

    test('the first piece does not wait for the whole answer', async () => {
        cloud.next({ text: (record) => ['Well, ', placeholders(record)[0].slice(0, 4), placeholders(record)[0].slice(4), ' end'], hang_after: 1 });
        const controller = new AbortController();
        const stream = await openai().chat.completions.create(
            { model: 'auto', stream: true, messages: [{ role: 'user', content: ask }], ...conversation('case-42') }, { signal: controller.signal });
        for await (const chunk of stream) {
            if (!chunk.choices[0]?.delta?.content)
                continue;
            assert.equal(chunk.choices[0].delta.content, 'Well, ');
            break;
        }
        controller.abort();
    });

    test('arguments of tool calls come back as JSON with the values', async () => {
        cloud.next({ tool_calls: (record) => [{ name: 'pay', arguments: { to: placeholders(record)[0], copy: placeholders(record)[1].toLowerCase() } }], cut_bytes: 5 });
        const tools = [{ type: 'function', function: { name: 'pay', parameters: { type: 'object', properties: { to: { type: 'string' }, copy: { type: 'string' } } } } }];
        const answer = await openai().chat.completions.create({ model: 'auto', messages: [{ role: 'user', content: ask }], tools, ...conversation('case-42') });
        const call = answer.choices[0].message.tool_calls[0];
        assert.deepEqual(JSON.parse(call.function.arguments), { to: iban, copy: mail });
        nothing_of(cloud, iban, mail);
        // The result of the tool, the call itself and the first turn leave redacted by the same names.
        const first = placeholders(cloud.calls[0]);
        cloud.next({ text: (record) => [placeholders(record).join(' ')] });
        const next = await openai().chat.completions.create({
            model: 'auto', tools, ...conversation('case-42'),
            messages: [{ role: 'user', content: ask }, answer.choices[0].message, { role: 'tool', tool_call_id: call.id, content: `paid to ${iban}, then DE89370400440532013000` }],
        });
        assert.equal(next.choices[0].message.content, `${iban} ${mail} DE89370400440532013000`);
        assert.deepEqual(placeholders(cloud.calls[1]).slice(0, 2), first);
        nothing_of(cloud, iban, mail, 'DE89370400440532013000');
    });

    test('the Anthropic dialect is the same', async () => {
        cloud.next({ text: (record) => ['It is ', placeholders(record)[0]] });
        const client = new Anthropic({ apiKey: anna, baseURL: molly.url, maxRetries: 0 });
        const stream = client.messages.stream({
            model: 'claude-like', max_tokens: 16, system: `About ${mail}`, messages: [{ role: 'user', content: ask }], ...conversation('case-42'),
        });
        const message = await stream.finalMessage();
        assert.equal(message.content[0].text, `It is ${mail}`);
        nothing_of(cloud, iban, mail);
    });

    test('an embedding input leaves redacted', async () => {
        const reply = await molly.fetch('/v1/embeddings', { key: anna, body: { model: 'cloud', input: [ask], ...conversation('case-42') } });
        assert.equal(reply.status, 200, reply.text);
        nothing_of(cloud, iban, mail);
        assert.match(cloud.calls[0].body, /\[IBAN_1_/);
    });

    test('trace and receipt say how much was redacted, and the receipts verify', async () => {
        const reply = await molly.chat(ask, { key: anna, ...conversation('case-42') });
        assert.equal(reply.headers.get('x-molly-tier'), 'T3', reply.text);
        const id = reply.headers.get('x-molly-receipt');
        const trace = await molly.trace(id);
        assert.deepEqual(trace.attempts[0].redactions, { email: 1, iban: 1 });
        assert.match(trace.decision.rule, /case-42/);
        const receipt = await molly.receipt(id);
        assert.deepEqual(receipt.body.redactions, { email: 1, iban: 1 });
        const shown = await molly.command('traces', 'show', id);
        assert.match(shown.stdout, /redacted: 1 email 1 iban/);
        const audit = await molly.command('audit', 'verify');
        assert.equal(audit.status, 0, audit.stdout + audit.stderr);
    });

    test('secret content stays, in any form', async () => {
        const reply = await molly.chat(ask, { key: anna, ...conversation('case-42', { class: 'secret' }) });
        assert.equal(reply.headers.get('x-molly-tier'), 'T0', reply.text);
        assert.equal(cloud.calls.length, 0);
    });
});

test('a label is lowered by an act that leaves a receipt', async () => {
    await molly.chat('a secret', { key: anna, ...conversation('lowered', { class: 'secret' }) });
    const named = (words) => molly.command('declassify', 'anna/lowered', ...words);
    assert.notEqual((await named(['--to', 'standard'])).status, 0);
    assert.notEqual((await named(['--to', 'standard', '--reason', `because of ${iban}`])).status, 0);
    const done = await named(['--to', 'standard', '--reason', 'it was announced', '--json']);
    assert.equal(done.status, 0, done.stderr);
    assert.deepEqual(JSON.parse(done.stdout).lowered, { from: 'secret', to: 'standard', reason: 'it was announced' });
    const after_it = await molly.chat('go on', { key: anna, ...conversation('lowered') });
    const trace = await molly.trace(after_it.headers.get('x-molly-receipt'));
    assert.equal(trace.label.class, 'standard');
    const denied = await molly.fetch('/molly/v1/declassify', { key: anna, body: { conversation: 'anna/lowered', class: 'public', reason: 'x' } });
    assert.equal(denied.status, 403, denied.text);
    assert.equal((await molly.command('audit', 'verify')).status, 0);
});
