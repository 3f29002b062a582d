// Bodies, keys and limits that real gateways got wrong, over bare HTTP.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

let molly;
let studio;
const body_bytes_max = 8 << 20;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({
        targets: [target('studio', 'T1', studio.port, { quality: 0.1 })],
        gateway: { body_bytes_max, body_timeout_ms: 2000, header_timeout_ms: 2000 },
        extra: '[aliases]\n"big" = "studio"\n',
    });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

const post = (body, options) => molly.fetch('/v1/chat/completions', { body, ...options });
const valid = '{"model":"studio","messages":[{"role":"user","content":"Ciao"}]}';

describe('the encoding of a body (case 10)', () => {
    test('a byte order mark is tolerated', async () => {
        const reply = await post(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(valid)]));
        assert.equal(reply.status, 200, reply.text);
    });

    const refused = {
        'GBK bytes': Buffer.from(valid.replace('Ciao', 'XXXX')).fill(Buffer.from([0xc4, 0xe3, 0xba, 0xc3]), valid.indexOf('Ciao'), valid.indexOf('Ciao') + 4),
        'a lone surrogate': Buffer.from(valid.replace('Ciao', '\\ud83d')),
        'a bare NUL in a string': Buffer.from(valid.replace('Ciao', 'a\0b')),
        '100,000 open brackets': Buffer.from(`{"model":"studio","messages":${'['.repeat(100_000)}`),
        'a model given twice': Buffer.from(valid.replace('{"model"', '{"model":"local","model"')),
        'a cut body': Buffer.from(valid.slice(0, -5)),
        'two values': Buffer.from(`${valid}{}`),
        'nothing': Buffer.from(''),
        'an array': Buffer.from('[1]'),
    };
    for (const [what, body] of Object.entries(refused))
        test(`${what} is refused, and nothing is forwarded`, async () => {
            studio.reset();
            const reply = await post(body);
            assert.equal(reply.status, 400, reply.text);
            assert.equal(reply.json.error.type, 'invalid_request_error');
            if (!['nothing', 'an array'].includes(what))
                assert.match(reply.json.error.message, /\d/, 'no offset or place is named');
            assert.equal(studio.calls.length, 0);
        });
});

describe('large and slow bodies (case 11)', () => {
    test('32,769 bytes of text are nothing special', async () => {
        const reply = await molly.chat('x'.repeat(32_769), { model: 'studio' });
        assert.equal(reply.status, 400);
        assert.equal(reply.json.error.code, 'context_length_exceeded');
        const fits = await molly.chat('x'.repeat(16_385), { model: 'studio' });
        assert.equal(fits.status, 200, fits.text);
    });

    test('a chunked body without end is cut at the limit with 413, in bounded memory', async () => {
        const before_bytes = molly.resident();
        const request = http.request({ port: molly.port, method: 'POST', path: '/v1/chat/completions', headers: { authorization: `Bearer ${molly.key}`, 'content-type': 'application/json' } });
        request.on('error', () => {});  // the server hangs up on what we still send
        const answered = once(request, 'response');
        let sent = 0;
        let status;
        answered.then(([response]) => { status = response.statusCode; response.resume(); }, () => {});
        const piece = Buffer.alloc(1 << 20, 'x');
        while (sent < 200 << 20 && status === undefined && !request.destroyed) {
            // What waits in the client is not what the server took.
            if (!request.write(piece)) await Promise.race([once(request, 'drain'), answered, once(request, 'close')]).catch(() => {});
            sent += piece.length;
            await sleep(1);
        }
        await until(() => status !== undefined || request.destroyed, 'an answer');
        request.destroy();
        assert.equal(status, 413);
        assert.ok(sent < 100 << 20, `${sent} bytes were taken`);
        assert.ok(molly.resident() - before_bytes < 3 * body_bytes_max + (8 << 20), 'memory grew with the body');
    });

    for (const [path, said] of [
        ['/v1/chat/completions', (body) => body.error.code === 'request_too_large' && body.error.type === 'invalid_request_error'],
        ['/v1/messages', (body) => body.type === 'error' && body.error.type === 'request_too_large'],
        ['/api/chat', (body) => typeof body.error === 'string'],
    ])
        test(`a declared length over the limit is refused before the body, as ${path} says it`, async () => {
            const socket = net.connect(molly.port, '127.0.0.1');
            socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${molly.key}\r\nContent-Length: 999999999\r\n\r\n`);
            const [piece] = await once(socket, 'data');
            const [head, body] = piece.toString().split('\r\n\r\n');
            assert.match(head, /^HTTP\/1.1 413 /);
            assert.ok(said(JSON.parse(body)), body);
            socket.destroy();
        });

    for (const [what, start] of [['body', `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n`], ['head', 'POST /v1/chat/completions HTTP/1.1\r\nHost: local']])
        test(`a ${what} of one byte a second is timed out`, async () => {
            const socket = net.connect(molly.port, '127.0.0.1');
            socket.on('error', () => {});
            socket.resume();
            socket.write(start);
            const began = Date.now();
            const closed = once(socket, 'close');
            const timer = setInterval(() => socket.write('x'), 500);
            await Promise.race([closed, sleep(6000)]);
            clearInterval(timer);
            assert.ok(Date.now() - began < 5500, 'the connection is still there');
            socket.destroy();
        });
});

describe('the scope of a key (case 24)', () => {
    let small;
    before(async () => {
        small = await molly.make_key({ member: 'small', models: ['local'] });
    });

    test('is held against what is dispatched, whatever asks for more', async () => {
        studio.reset();
        assert.equal((await molly.chat('x', { key: small, model: 'local', max_tokens: 2 })).status, 200);
        assert.equal((await molly.chat('x', { key: small, model: 'studio' })).status, 403);
        // An alias is a wish, not a name: others may stand in, within the scope.
        assert.equal((await molly.chat('x', { key: small, model: 'big' })).headers.get('x-molly-target'), 'local');
        const body = { model: 'local', max_tokens: 2, messages: [{ role: 'user', content: 'x' }] };
        const query = await molly.fetch('/v1/chat/completions?model=studio', { key: small, body });
        assert.equal(query.headers.get('x-molly-target'), 'local');
        const header = await molly.fetch('/v1/chat/completions', { key: small, body, headers: { 'x-molly-target': 'studio', 'x-molly-model': 'studio' } });
        assert.equal(header.headers.get('x-molly-target'), 'local');
        const auto = await molly.chat('x', { key: small, model: 'auto', molly: { mode: 'quality' } });
        assert.equal(auto.headers.get('x-molly-target'), 'local');
        assert.equal(studio.calls.length, 0);
    });

    test('a key makes none that may do more', async () => {
        const maker = await molly.make_key({ member: 'maker', admin: true, tiers: ['T0'], models: ['local'] });
        const wider = [{ member: 'x', tiers: ['T0', 'T1'], models: ['local'] }, { member: 'x', tiers: ['T0'] }, { member: 'x', tiers: ['T0'], models: ['local', 'studio'] },
            { member: 'x', tiers: ['T0'], models: ['local'], lowest_class: 'public' }];
        for (const scope of wider) {
            const made = await molly.fetch('/molly/v1/keys', { key: maker, body: scope });
            assert.equal(made.status, 403, `${JSON.stringify(scope)}: ${made.text}`);
        }
        const same = await molly.fetch('/molly/v1/keys', { key: maker, body: { member: 'x', tiers: ['T0'], models: ['local'] } });
        assert.equal(same.status, 201, same.text);
        const powerless = await molly.fetch('/molly/v1/keys', { key: small, body: { member: 'x', models: ['local'] } });
        assert.equal(powerless.status, 403);
    });

    test('one who is no admin reads the own traces only', async () => {
        const mine = await molly.chat('x', { key: small, model: 'local', max_tokens: 2 });
        const other = await molly.chat('x', { model: 'local', max_tokens: 2 });
        const see = async (reply) => (await molly.fetch(`/molly/v1/traces/${reply.headers.get('x-molly-receipt')}`, { key: small })).status;
        assert.equal(await see(mine), 200);
        assert.equal(await see(other), 404);
        const list = (await molly.fetch('/molly/v1/traces', { key: small })).json;
        assert.ok(list.traces.every((trace) => trace.member === 'small'));
    });

    test('a revoked key is no key', async () => {
        const { id, key } = await molly.new_key({ member: 'gone' });
        assert.equal((await molly.fetch('/v1/models', { key })).status, 200);
        assert.ok((await molly.fetch(`/molly/v1/keys/${id}`, { method: 'DELETE' })).status < 300);
        assert.equal((await molly.fetch('/v1/models', { key })).status, 401);
    });
});

describe('limits under parallel requests (case 22)', () => {
    test('requests per minute hold exactly', async () => {
        const key = await molly.make_key({ member: 'slow', requests_per_minute: 5 });
        const replies = await Promise.all(Array.from({ length: 30 }, () => molly.chat('x', { key, model: 'studio' })));
        assert.equal(replies.filter((reply) => reply.status === 200).length, 5);
        const refused = replies.filter((reply) => reply.status === 429);
        assert.equal(refused.length, 25);
        assert.ok(refused.every((reply) => Number(reply.headers.get('retry-after')) >= 1));
    });

    test('a refusal for concurrency consumes nothing', async () => {
        const key = await molly.make_key({ member: 'narrow', requests_per_minute: 2, parallel_max: 1 });
        studio.reset();
        studio.next({ wait_ms: 400 });
        const first = molly.chat('x', { key, model: 'studio' });
        await until(() => studio.calls.length === 1, 'the first is running');
        assert.equal((await molly.chat('x', { key, model: 'studio' })).status, 429);
        assert.equal((await first).status, 200);
        assert.equal((await molly.chat('x', { key, model: 'studio' })).status, 200);
        assert.equal((await molly.chat('x', { key, model: 'studio' })).status, 429);
    });
});

describe('what surrounds the faces', () => {
    test('metrics, without any name of a caller', async () => {
        await molly.chat('x', { model: 'studio' });
        const metrics = await molly.fetch('/metrics');
        assert.equal(metrics.status, 200);
        assert.match(metrics.text, /^# TYPE molly_\w+ counter$/m);
        assert.ok(!metrics.text.includes(molly.key.slice(-6)));
    });

    test('health, without a key', async () => {
        assert.equal((await molly.fetch('/molly/v1/health', { key: '' })).status, 200);
    });

    test('a foreign Host or Origin is refused: the browser of the owner is no proxy', async () => {
        const ask = (headers) => new Promise((resolve, reject) => {
            http.get({ port: molly.port, path: '/v1/models', headers: { authorization: `Bearer ${molly.key}`, ...headers } }, (response) => {
                response.resume();
                resolve(response.statusCode);
            }).on('error', reject);
        });
        assert.equal(await ask({ host: `localhost:${molly.port}` }), 200);
        assert.ok(await ask({ host: 'evil.example' }) >= 400);
        assert.ok(await ask({ origin: 'https://evil.example' }) >= 400);
    });

    test('errors of Molly come in Italian to who reads Italian', async () => {
        const english = await molly.fetch('/molly/v1/traces/none');
        const italian = await molly.fetch('/molly/v1/traces/none', { headers: { 'accept-language': 'it-IT,it;q=0.9' } });
        assert.equal(italian.status, 404);
        assert.notEqual(italian.json.error.message, english.json.error.message);
    });
});
