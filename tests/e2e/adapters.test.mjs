// Adapters by the model's name, through the real clients: openai, Anthropic, Ollama's shape, and the command line.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { Molly, model } from './molly.mjs';

const question = [{ role: 'user', content: 'Parlami di Roma.' }];

/** Numbers that a seed decides, roughly normal. */
function numbers(seed, count, deviation) {
    let state = seed >>> 0;
    const uniform = () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 32;
    };
    return Float32Array.from({ length: count }, () => (uniform() + uniform() + uniform() - 1.5) * 2 * deviation);
}

/** A GGUF LoRA file for the test model: rank 4 on two modules of each of its two layers. */
function write_adapter(file, { seed = 1, prefix = '', rank = 4, width = 96, deviation = 0.4 } = {}) {
    const tensors = [0, 1].flatMap((layer) => ['attn_q', 'attn_output'].flatMap((module) => {
        const name = `${prefix}blk.${layer}.${module}.weight`;
        return [{ name: `${name}.lora_a`, shape: [width, rank] }, { name: `${name}.lora_b`, shape: [rank, 96] }];
    }));
    const parts = [];
    const u32 = (value) => { const raw = Buffer.alloc(4); raw.writeUInt32LE(value); parts.push(raw); };
    const u64 = (value) => { const raw = Buffer.alloc(8); raw.writeBigUInt64LE(BigInt(value)); parts.push(raw); };
    const text = (value) => { u64(Buffer.byteLength(value)); parts.push(Buffer.from(value)); };
    const value = (key, of) => { text(key); u32(8); text(of); };
    parts.push(Buffer.from('GGUF'));
    u32(3); u64(tensors.length); u64(4);
    value('general.type', 'adapter'); value('general.architecture', 'llama'); value('adapter.type', 'lora');
    text('adapter.lora.alpha'); u32(6);
    const alpha = Buffer.alloc(4); alpha.writeFloatLE(8); parts.push(alpha);
    let offset = 0;
    for (const { name, shape } of tensors) {
        text(name); u32(2); u64(shape[0]); u64(shape[1]); u32(0); u64(offset);
        offset += Math.ceil(shape[0] * shape[1] * 4 / 32) * 32;
    }
    let file_bytes = Buffer.concat(parts);
    file_bytes = Buffer.concat([file_bytes, Buffer.alloc((32 - file_bytes.length % 32) % 32)]);
    const data = tensors.map(({ shape }, index) => Buffer.from(numbers(seed * 100 + index, shape[0] * shape[1], deviation).buffer));
    fs.writeFileSync(file, Buffer.concat([file_bytes, ...data]));
    return file;
}

describe('adapters', () => {
    let molly;
    let openai;

    before(async () => {
        molly = await Molly.start({});
        openai = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
    });
    after(async () => { await molly?.remove(); });

    const file = (name, options) => write_adapter(path.join(molly.folder, name), options);
    async function told(...words) {
        const done = await molly.command('adapters', ...words, '--json');
        assert.equal(done.status, 0, done.stderr + done.stdout);
        return done.stdout.trim() ? JSON.parse(done.stdout) : {};
    }
    const take = (name, seed, ...more) => told('import', file(`${name}-${seed}.gguf`, { seed }), '--name', name, '--base', model, ...more);
    async function ask(name, options = {}) {
        const { data, response } = await openai.chat.completions
            .create({ model: name, messages: question, temperature: 0, max_tokens: 32, ...options }).withResponse();
        return { text: data.choices[0].message.content, adapter: response.headers.get('x-molly-adapter'), receipt: response.headers.get('x-molly-receipt'), model: data.model };
    }

    test('one is asked for by name while the server runs, and header, trace and receipt say its version', async () => {
        const base = await ask('local');
        assert.equal(base.adapter, null);
        const made = await take('law', 1, '--domain', 'law');
        assert.equal(made.id, 'law@1.0.0');
        assert.equal(made.rank, 4);
        const answer = await ask('local/law');
        assert.notEqual(answer.text, base.text);
        assert.equal(answer.adapter, 'law@1.0.0');
        assert.equal((await ask('local/law@1.0.0')).text, answer.text);
        assert.equal((await ask('local', { molly: { adapter: 'law' } })).text, answer.text);
        const trace = await molly.trace(answer.receipt);
        assert.equal(trace.adapter, 'law@1.0.0');
        assert.match(JSON.stringify(await molly.receipt(answer.receipt)), /law@1\.0\.0/);
        assert.equal((await ask('local')).text, base.text, 'the base changed');
    });

    test('it is listed and shown', async () => {
        const names = (await openai.models.list()).data.map((entry) => entry.id);
        assert.ok(names.includes('local/law'), names.join());
        assert.equal((await openai.models.retrieve('local/law')).id, 'local/law');
        const tags = await molly.fetch('/api/tags');
        assert.ok(tags.json.models.some((entry) => entry.name === 'local/law'));
    });

    test('an unknown one is a 404 that says which there are', async () => {
        for (const name of ['local/lew', 'local/law@9.0.0']) {
            const fault = await ask(name).then(() => assert.fail('it answered'), (error) => error);
            assert.equal(fault.status, 404);
            assert.match(fault.message, /law/);
        }
    });

    test('every dialect reaches it', async () => {
        const anthropic = new Anthropic({ apiKey: molly.key, baseURL: molly.url, maxRetries: 0 });
        const { response } = await anthropic.messages.create({ model: 'local/law', max_tokens: 16, messages: question }).withResponse();
        assert.equal(response.headers.get('x-molly-adapter'), 'law@1.0.0');
        const { response: responses } = await openai.responses.create({ model: 'local/law', input: 'Ciao', max_output_tokens: 16 }).withResponse();
        assert.equal(responses.headers.get('x-molly-adapter'), 'law@1.0.0');
        const ollama = await molly.fetch('/api/chat', { body: { model: 'local/law', messages: question, stream: false, options: { num_predict: 16 } } });
        assert.equal(ollama.status, 200);
        assert.equal(ollama.headers.get('x-molly-adapter'), 'law@1.0.0');
    });

    // Case 17.
    test('other bytes are another version, and the answer says which served', async () => {
        const first = await ask('local/law');
        const same = await molly.command('adapters', 'import', file('other.gguf', { seed: 2 }), '--name', 'law', '--version', '1.0.0', '--base', model);
        assert.notEqual(same.status, 0);
        assert.match(same.stderr, /version never changes/);
        assert.equal((await take('law', 2)).id, 'law@1.1.0');
        const second = await ask('local/law');
        assert.equal(second.adapter, 'law@1.1.0');
        assert.notEqual(second.text, first.text);
        assert.equal((await ask('local/law@1.0.0')).text, first.text);
        await told('rollback', 'law');
        assert.equal((await ask('local/law')).adapter, 'law@1.0.0');
        await told('promote', 'law@1.1.0');
        assert.equal((await ask('local/law')).text, second.text);
    });

    test('several answer one request, each with its strength, in every way of naming them', async () => {
        await take('style', 5);
        const both = await ask('local/law@1.0.0*0.5,style');
        assert.equal(both.adapter, 'law@1.0.0*0.5,style@1.0.0');
        assert.equal((await molly.trace(both.receipt)).adapter, both.adapter);
        const listed = { molly: { adapters: [{ name: 'law@1.0.0', scale: 0.5 }, { name: 'style' }] } };
        assert.equal((await ask('local', listed)).text, both.text);
        const turned = await ask('local/style,law@1.0.0*0.5');
        assert.equal(turned.text, both.text, 'the order counts');
        for (const alone of ['local', 'local/law@1.0.0', 'local/style'])
            assert.notEqual((await ask(alone)).text, both.text, alone);
        assert.equal((await ask('local/law@1.0.0*0,style*0')).text, (await ask('local')).text);
        for (const [name, status] of [['local/law*x', 400], ['local/law,nobody', 404], ['local/law,', 400]]) {
            const fault = await ask(name).then(() => assert.fail(`${name} answered`), (error) => error);
            assert.equal(fault.status, status, `${name}: ${fault.message}`);
        }
        const key = await molly.make_key({ member: 'bea', models: ['local/law'] });
        const limited = new OpenAI({ apiKey: key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const fault = await limited.chat.completions.create({ model: 'local/law,style', messages: question, max_tokens: 8 })
            .then(() => assert.fail('it answered'), (error) => error);
        assert.ok(fault.status === 403 || fault.status === 404);
    });

    // SPEC section 1: an answer carries the join of its request and of the adapter that made it.
    test('the label of what it learned from is on the answer, its receipt and its conversation', async () => {
        const weights = file('secret.gguf', { seed: 77 });
        fs.writeFileSync(`${weights}.json`, JSON.stringify({ label: { class: 'secret', origins: ['corpus:letters'] } }));
        await told('import', weights, '--name', 'letters', '--base', model);
        const messages = [{ role: 'user', content: 'Che cosa sai di noi?' }];
        const plain = await molly.trace((await ask('local', { messages })).receipt);
        assert.equal(plain.label.class, 'private');
        const answer = await ask('local/letters', { messages });
        const trace = await molly.trace(answer.receipt);
        assert.equal(trace.label.class, 'secret');
        assert.ok(trace.label.origins.includes('corpus:letters'));
        assert.ok(trace.signals.some((signal) => signal.source === 'adapter:letters@1.0.0'), JSON.stringify(trace.signals));
        assert.match(JSON.stringify(await molly.receipt(answer.receipt)), /secret/);
        const later = await molly.trace((await ask('local', { messages })).receipt);
        assert.equal(later.label.class, 'secret', 'it does not stick to the conversation');
    });

    test('doctor says how adapters run and what memory they have', async () => {
        const { findings } = JSON.parse((await molly.command('doctor', '--json')).stdout);
        const text = JSON.stringify(findings);
        assert.match(text, /adapters share one batch \(15 layers, (avx512|avx2|plain)\)/);
        assert.match(text, /memory for requests, prefixes and adapters: [0-9.]+ of [0-9.]+ MiB/);
        const sizes = JSON.parse((await molly.command('adapters', 'sizes', model, '--json')).stdout);
        assert.ok(sizes.ranks.length > 0 && sizes.ranks.every((rank) => rank.load_ms > 0 && rank.load_ms < 5000));
    });

    // Case 15.
    test('one that does not fit is refused by the tensor\'s name', async () => {
        for (const [options, expected] of [[{ prefix: 'model.' }, /tensor model\.blk\.0\.attn_output\.weight\.lora_a/], [{ width: 64 }, /blk\.0\.attn_output\.weight|blk\.0\.attn_q\.weight/]]) {
            const done = await molly.command('adapters', 'import', file('bad.gguf', options), '--name', 'bad', '--base', model);
            assert.notEqual(done.status, 0);
            assert.match(done.stderr, expected);
        }
        const names = (await told('list')).adapters.map((entry) => entry.name);
        assert.ok(!names.includes('bad'));
    });

    // Case 18.
    test('requests over eight adapters stay apart while versions come and go', async () => {
        for (let index = 0; index < 8; ++index)
            await take(`f${index}`, 10 + index);
        const solo = [];
        for (let index = 0; index < 8; ++index)
            solo.push((await ask(`local/f${index}`)).text);
        assert.ok(new Set(solo).size >= 6, 'the adapters change too little to prove anything');
        let done = false;
        const churn = (async () => {
            for (let turn = 0; !done; ++turn) {
                const { id } = await take('f0', 30 + turn, '--keep-current');
                assert.equal((await molly.command('adapters', 'remove', id)).status, 0);
            }
        })();
        const answers = await Promise.all(Array.from({ length: 48 }, (_, index) => ask(`local/f${index % 8}`)));
        done = true;
        await churn;
        answers.forEach((answer, index) => assert.equal(answer.text, solo[index % 8], `request ${index}`));
    });

    test('a removed one is gone, the others stay, and all are sound', async () => {
        assert.equal((await molly.command('adapters', 'remove', 'f7')).status, 0);
        const fault = await ask('local/f7').then(() => assert.fail('it answered'), (error) => error);
        assert.equal(fault.status, 404);
        await ask('local/f6');
        const { sound } = await told('verify');
        assert.ok(sound.includes('law@1.1.0') && !sound.includes('f7@1.0.0'));
        const out = path.join(molly.folder, 'out');
        assert.ok(fs.existsSync((await told('export', 'law', '--to', out)).file));
        assert.equal(JSON.parse(fs.readFileSync(path.join(out, 'law-1.1.0.json'), 'utf8')).name, 'law');
        await told('pin', 'law');
        assert.ok((await told('show', 'law')).pinned);
    });

    test('a key limited to one adapter gets that one alone', async () => {
        const key = await molly.make_key({ member: 'anna', models: ['local/law'] });
        const limited = new OpenAI({ apiKey: key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const create = (name) => limited.chat.completions.create({ model: name, messages: question, max_tokens: 8 });
        await create('local/law');
        await create('local/law@1.0.0');
        for (const name of ['local', 'local/f1']) {
            const fault = await create(name).then(() => assert.fail(`${name} answered`), (error) => error);
            assert.ok(fault.status === 403 || fault.status === 404, `${name}: ${fault.status}`);
        }
    });
});
