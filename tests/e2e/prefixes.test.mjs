// Prompts' beginnings that are kept on request: over a restart, damaged, forbidden, dropped.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { Molly } from './molly.mjs';

const rules = Array.from({ length: 40 }, (_, i) => `Regola ${i}: rispondi con poche parole e di' quando non sai.`).join(' ');
const messages = [{ role: 'system', content: rules }, { role: 'user', content: 'Parlami di Roma.' }];

describe('prefixes on disk', () => {
    let molly;

    before(async () => { molly = await Molly.start({}); });
    after(async () => { await molly?.remove(); });

    const files = () => fs.readdirSync(path.join(molly.data, 'prefixes')).filter((name) => name.endsWith('.prefix'));
    async function ask(extensions, more = {}) {
        const openai = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const answer = await openai.chat.completions.create({
            model: 'local', messages, temperature: 0, max_tokens: 16, ...(extensions && { molly: extensions }), ...more });
        return { text: answer.choices[0].message.content, cached: answer.usage.prompt_tokens_details.cached_tokens, said: answer.molly?.prefix };
    }
    async function told(...words) {
        const done = await molly.command('prefixes', ...words, '--json');
        // What it found, and what is wrong with it, a line each.
        const said = done.stdout.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
        return { status: done.status, ...Object.assign({}, ...said), text: done.stdout + done.stderr };
    }
    async function written(count) {
        for (let tries = 0; tries < 200 && files().length !== count; ++tries)
            await sleep(25);
        assert.equal(files().length, count);
    }

    let cold;

    test('nothing lies on disk before somebody asks for it', async () => {
        assert.equal((await ask()).said, undefined);
        assert.deepEqual(files(), []);
        await molly.stop();
        await molly.launch();
    });

    test('after a restart the same request goes on from the disk', async () => {
        cold = await ask({ keep_prefix: 'system' });
        assert.equal(cold.cached, 0);
        assert.equal(cold.said, 'saving');
        await written(1);
        await molly.stop();
        await molly.launch();
        const warm = await ask({ keep_prefix: 'system' });
        assert.equal(warm.said, 'kept');
        assert.ok(warm.cached >= 512, `${warm.cached} tokens`);
        assert.equal(warm.text, cold.text);
        const health = await molly.fetch('/molly/v1/health');
        assert.equal(health.json.prefixes_on_disk.loaded, 1);
        assert.equal(files().length, 1);
    });

    test('an answer says so in a stream too, and in the last chunk alone', async () => {
        const openai = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const said = [];
        for await (const chunk of await openai.chat.completions.create({ model: 'local', messages, stream: true, max_tokens: 4, molly: { keep_prefix: 'system' } }))
            if (chunk.molly) said.push(chunk.molly.prefix);
        assert.deepEqual(said, ['kept']);
    });

    test('it is listed, without content, and no text of it is on disk', async () => {
        const { prefixes } = await told('list');
        assert.equal(prefixes.length, 1);
        assert.equal(prefixes[0].state, 'ready');
        assert.equal(prefixes[0].class, 'private');
        assert.equal(prefixes[0].member, 'owner');
        assert.equal((await told('verify')).status, 0);
        const bytes = fs.readFileSync(path.join(molly.data, 'prefixes', files()[0]));
        assert.equal(bytes.indexOf('owner'), -1);
        const table = await molly.command('prefixes', 'list', '--lang', 'it');
        assert.match(table.stdout, /membro/);
    });

    test('another member gets nothing of it', async () => {
        const key = await molly.make_key({ member: 'bruno' });
        await molly.stop();
        await molly.launch();
        const reply = await molly.fetch('/v1/chat/completions', { key, body: { model: 'local', messages, max_tokens: 4 } });
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.json.usage.prompt_tokens_details.cached_tokens, 0);
    });

    test('secret content is not kept, and the answer says so', async () => {
        // Texts of their own: what was secret once is known again.
        const said = (text) => ({ messages: [{ role: 'user', content: text.repeat(20) }] });
        const answer = await ask({ keep_prefix: 'prompt', class: 'secret' }, said('Il bilancio riservato della ditta. '));
        assert.equal(answer.said, 'class_forbids');
        const key = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEpAIBAAKCAQEA'.repeat(20)}\n-----END RSA PRIVATE KEY-----`;
        const found = await ask({ keep_prefix: 'prompt' }, said(`${key} Che cosa apre? `));
        assert.equal(found.said, 'class_forbids');
        assert.equal(files().length, 1);
    });

    test('a damaged file is named, and its request is computed', async () => {
        await molly.stop();
        const file = path.join(molly.data, 'prefixes', files()[0]);
        const bytes = fs.readFileSync(file);
        bytes[bytes.length - 100] ^= 1;
        fs.writeFileSync(file, bytes);
        const verified = await told('verify');
        assert.equal(verified.status, 1);
        assert.equal(verified.prefixes[0].state, 'damaged');
        assert.match(verified.text, /molly prefixes drop/);
        await molly.launch();
        const answer = await ask();
        assert.equal(answer.cached, 0);
        assert.equal(answer.text, cold.text);
        assert.match(molly.log, /prefix_refused/);
        await written(0);
    });

    test('what is dropped while the server runs is computed and kept again', async () => {
        await molly.stop();
        await molly.launch();
        assert.equal((await ask({ keep_prefix: 'system' })).said, 'saving');
        await written(1);
        await molly.stop();
        await molly.launch();
        assert.equal((await told('drop', '--member', 'owner')).dropped, 1);
        assert.equal((await told('drop', 'nobody')).status, 4);
        assert.equal((await told('drop')).status, 2);
        const answer = await ask();
        assert.equal(answer.cached, 0);
        assert.equal(answer.text, cold.text);
    });

    test('without room on disk nothing is kept, and what lay there goes', async () => {
        assert.equal((await ask({ keep_prefix: 'system' })).said, 'saving');
        await written(1);
        await molly.stop();
        await molly.launch({ engine: { prefix_disk_mib: 0 } });
        assert.deepEqual(files(), []);
        assert.equal((await ask({ keep_prefix: 'system' })).said, 'off');
    });
});
