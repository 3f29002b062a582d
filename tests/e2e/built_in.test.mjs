// The model and the specialists that come with Molly, as a fresh data folder sees them.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';

import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

const models = path.resolve(import.meta.dirname, '../../models');
const shipped = fs.readdirSync(path.join(models, 'specialists')).filter((name) => name.endsWith('.json'))
    .map((name) => JSON.parse(fs.readFileSync(path.join(models, 'specialists', name), 'utf8')));

let molly;
before(async () => {
    molly = await Molly.start({ engine: { model: path.join(models, 'molly-nano.gguf'), deterministic: true } });
});
after(() => molly.remove());

async function ask(model, content, fields = {}) {
    const reply = await molly.fetch('/v1/chat/completions', {
        method: 'POST', body: { model, temperature: 0, max_tokens: 96, messages: [{ role: 'user', content }], ...fields },
    });
    assert.equal(reply.status, 200, JSON.stringify(reply.json));
    return { text: reply.json.choices[0].message.content, headers: reply.headers };
}

test('the base answers in Italian and in English', async () => {
    assert.equal((await ask('molly-nano', 'Come si dice 45 in inglese?')).text, 'forty-five');
    assert.match((await ask('auto', 'Good morning!')).text, /[a-z]{2}/i);
    assert.match((await ask('molly-nano', 'Spiegami la fotosintesi.')).text, /modello più grande|capacità/);
});

test('every shipped specialist was taken in, serves, and answers in its own form', async () => {
    assert.ok(shipped.length >= 8, `${shipped.length} specialists`);
    for (const { name, version, component } of shipped) {
        const { text, headers } = await ask(`molly-nano/${name}`, 'The lamp of order B-221 is broken, please call me on 3 May.');
        assert.equal(headers.get('x-molly-adapter'), `${name}@${version}`);
        const answer = JSON.parse(text);
        if (component.schema.enum) assert.ok(component.schema.enum.includes(answer), `${name}: ${text}`);
        for (const member of component.schema.required ?? []) assert.ok(member in answer, `${name}: ${text}`);
    }
});

test('health counts what was drafted', async () => {
    const { speculation } = (await molly.fetch('/molly/v1/health')).json;
    assert.equal(speculation.on, true);
    assert.equal(speculation.draft_model, null);
    assert.ok(speculation.accepted <= speculation.drafted, JSON.stringify(speculation));
});

test('who says how to answer gets that instead of the specialist\'s form', async () => {
    const { text } = await ask('molly-nano/tickets', 'Good morning!', {
        response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'boolean' } } },
    });
    assert.ok(['true', 'false'].includes(text.trim()), text);
});

test('eight specialists answer together as each does alone', async () => {
    const names = shipped.map(({ name }) => name).slice(0, 8);
    const one = (name) => ask(`molly-nano/${name}`, 'My card has not arrived yet, order A-17, 12 March').then(({ text }) => text);
    const alone = [];
    for (const name of names) alone.push(await one(name));
    assert.deepEqual(await Promise.all(names.map(one)), alone);
});

test('a specialist serves what is like its prompts, and a hard question goes to a declared T1', async () => {
    const studio = await MockUpstream.start({ name: 'studio' });
    const prompts = ['La lampada dell\'ordine B-17 è rotta', 'Il pacco dell\'ordine 88 non è arrivato', 'Vorrei rendere la sedia, ordine C-3',
        'Ho pagato due volte l\'ordine 4512', 'Non riesco a entrare nel mio profilo', 'The chair of order K-9 arrived broken',
        'Where is my parcel, order 771?', 'I was charged twice for order D-20'];
    const extra = `[[specialist]]\ntarget = "local"\nadapter = "tickets"\ndomain = "business"\nquality = 0.9\nprompts = ${JSON.stringify(prompts)}\n`;
    const office = await Molly.start({
        engine: { model: path.join(models, 'molly-nano.gguf') }, extra, targets: [target('studio', 'T1', studio.port, { quality: 0.8 })],
    });
    try {
        const route = async (content, fields = {}) => {
            const reply = await office.fetch('/v1/chat/completions', { body: { model: 'auto', max_tokens: 64, messages: [{ role: 'user', content }], ...fields } });
            assert.equal(reply.status, 200, JSON.stringify(reply.json));
            return [reply.headers.get('x-molly-tier'), reply.headers.get('x-molly-adapter'), reply.json];
        };
        const [tier, adapter, ticket] = await route('Il pacco dell\'ordine F-42 non è arrivato, è urgente');
        assert.deepEqual([tier, adapter], ['T0', 'tickets@1.0.0']);
        assert.ok('urgency' in JSON.parse(ticket.choices[0].message.content));
        assert.equal(studio.requests.length, 0);
        const hard = 'Dimostra passo per passo che la radice di due è irrazionale e discuti le generalizzazioni';
        assert.equal((await route(hard))[0], 'T1');
        assert.equal(studio.requests.length, 1);
        assert.equal((await route(hard, { molly: { class: 'secret' } }))[0], 'T0');
        assert.equal(studio.requests.length, 1);
    } finally {
        await office.remove();
        await studio.stop();
    }
});

test('a copy with a smaller head serves the same specialists, and says what it is', async () => {
    const made = await molly.command('models', 'optimize', path.join(models, 'molly-nano.gguf'), '--name', 'slim', '--tokens', '512', '--json');
    assert.equal(made.status, 0, made.stderr);
    const told = JSON.parse(made.stdout);
    assert.equal(told.head_after, 'q4_0');
    assert.ok(told.head_bytes_after < told.head_bytes_before, made.stdout);
    assert.ok(told.nats < 0.2 && told.perplexity_after / told.perplexity_before < 1.2, made.stdout);
    const wrong = await molly.command('models', 'optimize', 'slim', '--head', 'q3');
    assert.notEqual(wrong.status, 0);
    assert.match(wrong.stderr, /q4_0/);

    await molly.stop();
    await molly.launch({ engine: { model: 'slim', deterministic: true } });
    const { text, headers } = await ask('local/dates', 'La riunione comincia il 3 marzo 2025');
    assert.equal(headers.get('x-molly-adapter'), 'dates@1.0.0');
    assert.deepEqual(JSON.parse(text), { type: 'date', timex: '2025-03-03' });
    const receipt = await molly.receipt(headers.get('x-molly-receipt'));
    assert.ok(JSON.stringify(receipt).includes(told.sha256), 'the receipt names the file that answered');
});
