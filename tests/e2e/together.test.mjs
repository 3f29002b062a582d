// Several at once, over HTTP: a mixture of the specialists that come with Molly, a verifier, more samples, a rival for a slow target.
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { MockUpstream } from './mock_upstream.mjs';
import { Molly, events_of, target } from './molly.mjs';

const models = path.resolve(import.meta.dirname, '../../models');
const nano = { model: path.join(models, 'molly-nano.gguf'), deterministic: true };

const specialist = (adapter, domain, quality) =>
    `[[specialist]]\ntarget = "local"\nadapter = "${adapter}"\ndomain = "${domain}"\nquality = ${quality}\nthreshold = 0.5\n`;

/** Runs `body` with a Molly, and mocks by name; all are gone afterwards. */
async function among(names, options, body) {
    const mocks = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await MockUpstream.start({ name })])));
    const molly = await Molly.start(options(mocks));
    try {
        await body(molly, mocks);
    } finally {
        await molly.remove();
        for (const mock of Object.values(mocks)) await mock.stop();
    }
}
const causes = (trace) => trace.attempts.map(({ cause }) => cause ?? 'step');

test('what is of several domains is asked of its specialists at once, and one answer is told', async () => {
    const extra = specialist('banking', 'medicine', 0.8) + specialist('tickets', 'science', 0.8) + specialist('triage', 'humanities', 0.8);
    const spread = 'Come si insegna ai medici a usare le reti neurali per la radiologia?';
    await among(['studio'], ({ studio }) => ({ engine: nano, extra, targets: [target('studio', 'T1', studio.port, { quality: 0.9 })] }), async (molly, { studio }) => {
        const reply = await molly.chat(spread, { max_tokens: 48, temperature: 0 });
        assert.equal(reply.status, 200, reply.text);
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.ok(trace.attempts.length >= 2, JSON.stringify(trace.decision.candidates));
        assert.ok(causes(trace).every((cause) => cause === 'mixture'), JSON.stringify(trace.attempts));
        // One was told, the others were not; each has a line with its own usage.
        const told = trace.attempts.filter(({ rejected }) => !rejected);
        assert.equal(told.length, 1);
        assert.equal(told[0].adapter, reply.headers.get('x-molly-adapter'));
        assert.ok(trace.attempts.every(({ usage, failed }) => !failed && usage.answer_tokens > 0));
        assert.deepEqual(trace.usage, told[0].usage);
        assert.equal(studio.calls.length, 0);
        const receipt = JSON.stringify(await molly.receipt(trace.id));
        assert.equal(receipt.match(/mixture/g).length, trace.attempts.length, receipt);
        // A stream says nothing before one is chosen, and then the same.
        const stream = await molly.chat(spread, { max_tokens: 48, temperature: 0, stream: true });
        const pieces = events_of(stream.text).filter(({ data }) => data && data !== '[DONE]').map(({ data }) => JSON.parse(data));
        assert.equal(pieces.map(({ choices }) => choices[0]?.delta?.content ?? '').join(''), reply.json.choices[0].message.content);
        const explained = await molly.command('router', 'explain', spread, '--json');
        assert.ok(JSON.parse(explained.stdout).candidates.filter(({ weight }) => weight > 0).length >= 2, explained.stdout);
    });
});

test('a verifier says what an answer is worth, and its line says what that cost', async () => {
    await among(['judge', 'studio'], ({ judge, studio }) => ({
        engine: { ...nano, confidence_min: 0.8, confidence_from: 'verifier', verifier: 'judge' },
        targets: [target('judge', 'T1', judge.port, { quality: 0.01, price_answer: 2 }), target('studio', 'T1', studio.port, { quality: 0.02 })],
    }), async (molly, { judge, studio }) => {
        judge.next({ text: ['12'] });
        const reply = await molly.chat('Ciao!', { stream: true, molly: { mode: 'quality' } });
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.deepEqual(trace.attempts.map(({ target: name }) => name), ['local', 'judge', 'studio'], JSON.stringify(trace.attempts));
        assert.deepEqual(causes(trace), ['step', 'verification', 'step']);
        assert.equal(trace.attempts[0].confidence, 0.12);
        assert.ok(trace.attempts[0].rejected);
        assert.notEqual(trace.attempts[1].cost, '0');
        assert.match(reply.text, /studio/);
        assert.equal(studio.calls.length, 1);
        judge.next({ text: ['97'] });
        const content = await molly.chat('Ciao!');
        assert.equal(content.headers.get('x-molly-target'), 'local');
        // Nobody verifies what may go nowhere else.
        judge.reset();
        const secret = await molly.chat('Ciao!', { molly: { class: 'secret' } });
        assert.equal(secret.headers.get('x-molly-target'), 'local');
        assert.equal(judge.calls.length, 0);
    });
});

test('samples that differ go up, samples that agree are told', async () => {
    await among(['studio', 'rented'], ({ studio, rented }) => ({
        engine: { enabled: false },
        targets: [target('studio', 'T1', studio.port, { quality: 0.9, confidence_min: 0.6, confidence_from: 'samples', capabilities: ['chat'] }),
            target('rented', 'T1', rented.port, { quality: 0.1 })],
    }), async (molly, { studio }) => {
        // Of the same tier nobody could do better: asked once.
        await molly.chat('Ciao!');
        assert.equal(studio.calls.length, 1);
    });
    await among(['studio'], ({ studio }) => ({
        engine: { ...nano, confidence_min: 0.6, confidence_from: 'samples', quality: 0.95 },
        targets: [target('studio', 'T1', studio.port, { quality: 0.1 })],
    }), async (molly, { studio }) => {
        const reply = await molly.chat('Come si dice 45 in inglese?', { temperature: 0, max_tokens: 16 });
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.deepEqual(causes(trace).slice(0, 3), ['step', 'sample', 'sample']);
        const sure = trace.attempts.slice(0, 3).find(({ confidence }) => confidence !== undefined);
        assert.equal(studio.calls.length, sure.confidence < 0.6 ? 1 : 0, JSON.stringify(trace.attempts));
    });
});

test('a slow target gets a rival, the first word wins, and the other is given up', async () => {
    await among(['den', 'office'], ({ den, office }) => ({
        engine: { enabled: false },
        extra: '[routing]\nhedge = true\nhedge_after_ms = 150\n',
        targets: [target('den', 'T1', den.port, { quality: 0.9 }), target('office', 'T1', office.port, { quality: 0.5 })],
    }), async (molly, { den, office }) => {
        den.next({ wait_ms: 20_000 });
        const begin = Date.now();
        const reply = await molly.chat('Ciao!', { stream: true });
        assert.ok(Date.now() - begin < 10_000);
        assert.match(reply.text, /office/);
        const trace = await molly.trace(reply.headers.get('x-molly-receipt'));
        assert.deepEqual(trace.attempts.map(({ target: name, failed, cause }) => [name, failed, cause]),
            [['den', 'cancelled', undefined], ['office', undefined, 'hedge']]);
        assert.equal(trace.attempts[0].failure, 'hedge_lost');
        assert.equal(trace.target, 'office');
        assert.ok(den.calls[0].closed, 'the slow one was not given up');
        den.reset();
        office.reset();
        // Whoever is quick has no rival.
        await molly.chat('Ciao!', { model: 'den' });
        assert.equal(office.calls.length, 0);
    });
});
