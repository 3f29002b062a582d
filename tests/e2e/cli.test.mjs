// The command line, beside a running server and without one.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { make_certificate } from './mock_upstream.mjs';
import { Molly, model } from './molly.mjs';

let molly;

before(async () => {
    molly = await Molly.start();
});
after(() => molly?.remove());

/** Runs a command that must succeed; gives its parsed output. */
async function told(...words) {
    const ran = await molly.command(...words, '--json');
    assert.equal(ran.status, 0, `molly ${words.join(' ')}: ${ran.stdout}${ran.stderr}`);
    return JSON.parse(ran.stdout);
}

describe('beside a server', () => {
    test('ask answers, for people and for programs', async () => {
        const plain = await molly.command('ask', 'Ciao, come va?', '--max-tokens', '12');
        assert.equal(plain.status, 0, plain.stderr);
        assert.ok(plain.stdout.trim().length > 0);
        const answer = await told('ask', 'Ciao', '--max-tokens', '12', '--class', 'secret', '--explain');
        assert.equal(answer.tier, 'T0');
        assert.ok(answer.answer.length > 0);
        assert.ok(await molly.receipt(answer.receipt));
        assert.equal((await told('traces', 'show', answer.receipt)).label.class, 'secret');
    });

    test('--version says the same as version', async () => {
        const flag = await molly.command('--version');
        assert.equal(flag.status, 0, flag.stderr);
        assert.match(flag.stdout, /^molly \d+\.\d+\.\d+$/m);
        assert.equal(flag.stdout, (await molly.command('version')).stdout);
    });

    test('keys are made, listed without their text, and revoked', async () => {
        const made = await told('keys', 'create', '--member', 'anna', '--tiers', 'T0');
        assert.match(made.key, /^molly-[0-9A-Za-z]{40}$/);
        assert.equal((await molly.fetch('/v1/models', { key: made.key })).status, 200);
        const listed = await molly.command('keys', 'list', '--json');
        assert.ok(listed.stdout.includes(made.id) && !listed.stdout.includes(made.key));
        await told('keys', 'revoke', made.id);
        assert.equal((await molly.fetch('/v1/models', { key: made.key })).status, 401);
    });

    test('targets, traces and doctor tell what there is', async () => {
        assert.deepEqual((await told('targets')).targets.map((target) => target.name), ['local']);
        assert.ok((await told('traces', 'list', '--limit', '2')).traces.length > 0);
        assert.ok((await told('doctor')).findings.length > 3);
    });

    test('a refusal is an exit code and a sentence, in two languages', async () => {
        const english = await molly.command('ask', 'x', '--model', 'nobody');
        assert.equal(english.status, 4, english.stderr);
        assert.equal((await molly.command('ask', 'x', '--clas', 'secret')).status, 2);
        assert.match((await molly.command('traces', 'show', 'none')).stderr, /there is no trace/);
        const italian = await molly.command('traces', 'show', 'none', '--lang', 'it');
        assert.equal(italian.status, 4);
        assert.match(italian.stderr, /non c'è la traccia/);
    });

    test('a second server on the same data folder is impossible', async () => {
        const second = await molly.command('serve');
        assert.notEqual(second.status, 0);
        assert.equal((await molly.fetch('/molly/v1/health')).status, 200);
    });
});

describe('help', () => {
    test('teaches every command, with examples', async () => {
        const { stdout } = await molly.command('--help');
        for (const name of ['serve', 'ask', 'chat', 'models', 'targets', 'traces', 'audit', 'keys', 'doctor']) {
            assert.match(stdout, new RegExp(`^  ${name}\\b`, 'm'));
            const help = await molly.command(name, '--help');
            assert.equal(help.status, 0);
            assert.match(help.stdout, /Examples:/, name);
        }
        assert.match((await molly.command('--help', '--lang', 'it')).stdout, /Avvia Molly/);
    });

    test('completes in bash', async () => {
        const script = `${(await molly.command('completion', 'bash')).stdout}\nCOMP_WORDS=(molly models p); COMP_CWORD=2; _molly; echo "\${COMPREPLY[*]}"`;
        assert.equal(execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim(), 'pull');
    });

    test('the default configuration is one that it takes', async () => {
        const { stdout } = await molly.command('config', 'default');
        const file = path.join(molly.folder, 'default.toml');
        fs.writeFileSync(file, stdout);
        assert.equal((await molly.run(['config', 'check', '--config', file])).status, 0);
        fs.writeFileSync(file, stdout.replace('port = 8484', 'prot = 8484'));
        const wrong = await molly.run(['config', 'check', '--config', file]);
        assert.equal(wrong.status, 2);
        assert.match(wrong.stderr + wrong.stdout, /prot/);
    });
});

describe('models', () => {
    let server;
    let certificate;
    let seen;
    let drop_after;
    const bytes = fs.readFileSync(model);
    const sha256 = createHash('sha256').update(bytes).digest('hex');

    before(async () => {
        certificate = path.join(molly.folder, 'cert.pem');
        const tls = make_certificate(molly.folder);
        certificate = tls.file;
        server = https.createServer(tls, serve);
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
    });
    after(() => {
        server?.closeAllConnections();
        server?.close();
    });

    function serve(request, response) {
        seen.push({ path: request.url, range: request.headers.range, headers: request.headers });
        if (request.url === '/moved') {
            response.writeHead(302, { location: '/molly.gguf' }).end();
            return;
        }
        const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
        const part = request.url === '/broken.gguf' ? Buffer.from('no model at all') : bytes.subarray(from);
        response.writeHead(from > 0 ? 206 : 200, {
            'content-length': part.length, 'accept-ranges': 'bytes', etag: '"1"',
            ...(from > 0 && { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` }),
        });
        if (drop_after === undefined) {
            response.end(part);
        } else {
            response.write(part.subarray(0, drop_after), () => setTimeout(() => response.destroy(), 50));
            drop_after = undefined;
        }
    }

    test('imports a file once, under a name', async () => {
        const made = await told('models', 'import', model, '--name', 'tiny');
        assert.equal(made.sha256, sha256);
        assert.ok((await told('models', 'list')).models.some((entry) => entry.name === 'tiny'));
        const broken = path.join(molly.folder, 'broken.gguf');
        fs.writeFileSync(broken, 'GGUF but not really');
        assert.notEqual((await molly.command('models', 'import', broken)).status, 0);
    });

    test('pulls over TLS, follows a redirect, and goes on where a broken download ended', async () => {
        seen = [];
        const from = (name) => `https://localhost:${server.address().port}/${name}`;
        assert.notEqual((await molly.command('models', 'pull', from('molly.gguf'))).status, 0, 'a stranger\'s certificate was taken');
        drop_after = 100_000;
        const first = await molly.command('models', 'pull', from('moved'), '--name', 'pulled', '--ca-file', certificate, '--sha256', sha256);
        const made = first.status === 0 ? await told('models', 'show', 'pulled')
            : await told('models', 'pull', from('moved'), '--name', 'pulled', '--ca-file', certificate, '--sha256', sha256);
        assert.equal(made.sha256, sha256);
        assert.ok(seen.some((request) => Number(/bytes=(\d+)-/.exec(request.range ?? '')?.[1] ?? 0) > 0), `it began again: ${JSON.stringify(seen)}`);
        assert.ok(seen.every((request) => request.headers.authorization === undefined));
    });

    test('refuses what is no model, and other bytes than expected', async () => {
        seen = [];
        const pull = (name, ...more) => molly.command('models', 'pull', `https://localhost:${server.address().port}/${name}`, '--ca-file', certificate, ...more);
        assert.notEqual((await pull('broken.gguf', '--name', 'broken')).status, 0);
        assert.notEqual((await pull('molly.gguf', '--name', 'other', '--sha256', '0'.repeat(64))).status, 0);
        assert.notEqual((await molly.command('models', 'pull', 'http://localhost:1/x.gguf')).status, 0);
        const names = (await told('models', 'list')).models.map((entry) => entry.name);
        assert.ok(!names.includes('broken') && !names.includes('other'), names.join());
    });
});

describe('without a server', () => {
    before(() => molly.stop());

    test('ask runs the engine itself, and the trace is kept', async () => {
        const answer = await told('ask', 'Ciao', '--max-tokens', '8');
        assert.equal(answer.target, 'local');
        assert.equal((await told('traces', 'show', answer.receipt)).outcome, 'answered');
    });

    test('audit verifies the default folder, and a noted head', async () => {
        const report = await told('audit', 'verify');
        assert.equal(report.sound, true);
        assert.ok(report.receipts > 0);
        assert.equal((await told('audit', 'verify', '--head', report.head)).sound, true);
        assert.equal((await molly.command('audit', 'verify', '--head', '0'.repeat(64))).status, 6);
    });
});
