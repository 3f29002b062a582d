// A server under abuse: malformed requests by the thousand, and kill -9 under load.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

let molly;
let studio;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.9 })] });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

/** mulberry32: the same seed gives the same requests. */
function random(seed) {
    let state = seed;
    return (below) => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
    };
}

const paths = ['/v1/chat/completions', '/v1/completions', '/v1/responses', '/v1/embeddings', '/v1/messages', '/api/chat', '/api/generate', '/molly/v1/keys', '/v1/models', '/%00', '/../../etc/passwd', '/v1/chat/completions?model=%ff'];
const bodies = [
    '{"model":"studio","messages":[{"role":"user","content":"Ciao"}],"max_tokens":4}', '{"model":"studio","input":"Ciao"}', '{"model":"studio","prompt":"Ciao"}',
    '[[[[[[', '{"model":', '"\\ud800"', '{"messages":[{"role":"user","content":{"a":1}}]}', '{"model":"studio","messages":"x"}', '{"a":1e999}', '\u0000', '{"model":"studio","messages":[null]}',
];

function malformed(pick) {
    const body = bodies[pick(bodies.length)];
    const head = (method, length, ...more) => `${method} ${paths[pick(paths.length)]} HTTP/1.1\r\nHost: localhost\r\n${more.map((line) => `${line}\r\n`).join('')}Content-Length: ${length}\r\n\r\n`;
    const authorized = `Authorization: Bearer ${pick(2) ? molly.key : 'molly-wrong'}`;
    const kinds = [
        () => Buffer.from(Array.from({ length: 1 + pick(400) }, () => pick(256))),
        () => Buffer.from(head('POST', body.length, authorized) + body),
        () => Buffer.from(head('POST', body.length + 1 + pick(50), authorized) + body),
        () => Buffer.from(head('POST', ['-1', 'x', '99999999999999999999', '1, 2'][pick(4)], authorized) + body),
        () => Buffer.from(head(['GET', 'PUT', 'BREW', 'CONNECT', ''][pick(5)], body.length, authorized) + body),
        () => Buffer.from(head('POST', 2, authorized, `X-Long: ${'a'.repeat(pick(60_000))}`) + '{}'),
        () => Buffer.from(head('POST', 2, authorized, 'Transfer-Encoding: chunked', 'Broken') + '{}'),
        () => Buffer.from(`POST ${paths[pick(paths.length)]} HTTP/1.1\r\nHost: localhost\r\n${authorized}\r\nTransfer-Encoding: chunked\r\n\r\n${['zz\r\n', '5\r\nab', 'ffffffffffffffff\r\n', '2\r\n{}\r\n1'][pick(4)]}`),
        () => Buffer.from(`GET ${paths[pick(paths.length)]} HTTP/${['9.9', '1.1', '0.9', ''][pick(4)]}\r\n${'Host: a\r\n'.repeat(pick(4))}\r\n`),
        () => {
            const bytes = Buffer.from(head('POST', body.length, authorized) + body);
            for (let flips = 1 + pick(6); flips > 0; --flips)
                bytes[pick(bytes.length)] = pick(256);
            return bytes;
        },
        () => Buffer.from('\r\n'.repeat(1 + pick(20))),
    ];
    return kinds[pick(kinds.length)]();
}

/** Sends the bytes, reads until the server hangs up or nothing more is to be expected. */
function send(bytes, leave_at_once) {
    return new Promise((resolve) => {
        const socket = net.connect(molly.port, '127.0.0.1');
        let refused = false;
        const end = () => {
            clearTimeout(timer);
            socket.destroy();
            resolve(refused);
        };
        const timer = setTimeout(end, 3000);
        socket.on('error', (error) => {
            refused = error.code === 'ECONNREFUSED';
            end();
        });
        socket.on('close', end);
        socket.resume();
        socket.write(bytes, () => {
            if (leave_at_once)
                end();
            else
                socket.end();
        });
    });
}

test('10,000 malformed requests leave it alive and its memory flat', { timeout: 300_000 }, async () => {
    const pick = random(20_261_130);
    const send_many = async (count) => {
        let left = count;
        let refused = 0;
        await Promise.all(Array.from({ length: 32 }, async () => {
            while (left-- > 0)
                refused += await send(malformed(pick), pick(10) === 0);
        }));
        assert.equal(refused, 0, 'it no longer listens');
    };
    await send_many(2000);
    const before_bytes = molly.resident();
    await send_many(8000);
    const grown = molly.resident() - before_bytes;
    assert.ok(grown < 16 << 20, `memory grew by ${grown} bytes`);
    const reply = await molly.chat('Still there?');
    assert.equal(reply.status, 200, reply.text);
    assert.equal((await molly.chat('And the engine?', { model: 'local' })).status, 200);
});

describe('kill -9 under load', () => {
    for (const round of [1, 2, 3])
        test(`loses no acknowledged trace (round ${round})`, { timeout: 200_000 }, async () => {
            const acknowledged = [];
            let running = true;
            const models = ['studio', 'studio', 'studio', 'local'];
            const load = Array.from({ length: 24 }, async (_, worker) => {
                while (running) {
                    try {
                        const stream = worker % 2 === 0;
                        const reply = await molly.chat('Ciao', { model: models[worker % models.length], stream });
                        if (reply.status === 200 && (!stream || reply.text.endsWith('data: [DONE]\n\n')))
                            acknowledged.push(reply.headers.get('x-molly-receipt'));
                    } catch {
                        return;  // the server is gone
                    }
                }
            });
            await until(() => acknowledged.length >= 100 * round, 'enough answers', 120_000);
            await molly.kill();
            running = false;
            await Promise.all(load);

            await molly.launch();
            for (let at = 0; at < acknowledged.length; at += 50)
                await Promise.all(acknowledged.slice(at, at + 50).map(async (id) => {
                    const found = await molly.fetch(`/molly/v1/receipts/${id}`);
                    assert.equal(found.status, 200, `${id} of ${acknowledged.length} is lost: ${found.text}`);
                    assert.equal((await molly.fetch(`/molly/v1/traces/${id}`)).json.outcome, 'answered');
                }));
            assert.equal((await molly.chat('Again')).status, 200);
            assert.equal(await molly.stop(), 0);
            const audit = await molly.command('audit', 'verify', '--json');
            assert.equal(audit.status, 0, audit.stdout + audit.stderr);
            assert.ok(JSON.parse(audit.stdout).receipts >= acknowledged.length);
            await molly.launch();
        });
});

test('a running answer ends before an ordered stop', async () => {
    studio.reset();
    studio.next({ text: ['one ', 'two ', 'three '], gap_ms: 250 });
    const reply = molly.chat('Ciao', { model: 'studio', stream: true });
    await sleep(200);
    const status = await molly.stop();
    assert.match((await reply).text, /data: \[DONE\]\n\n$/);
    assert.equal(status, 0);
    await molly.launch();
});

test('a crash leaves nothing of a conversation behind', async () => {
    const canary = 'Zanzibarrina-7741-kw';
    const limits = fs.readFileSync(`/proc/${molly.pid}/limits`, 'utf8');
    assert.match(limits, /Max core file size\s+0\s+0\s/);
    studio.reset();
    studio.next({ text: ['one ', 'two ', 'three '], gap_ms: 400 });
    const before = molly.log.length;
    const reply = molly.chat(`Ricorda ${canary}`, { model: 'studio', stream: true }).catch(() => undefined);
    await until(() => studio.requests.length === 1, 'the request at its target');
    process.kill(molly.pid, 'SIGSEGV');
    await molly.exited;
    await reply;
    assert.ok(!molly.log.slice(before).includes(canary), 'the log of the crash holds content');
    for (const folder of [process.cwd(), molly.folder])
        assert.deepEqual(fs.readdirSync(folder).filter((name) => /^core(\.|$)/.test(name)), [], folder);
    await molly.launch();
});
