// Starts the real binary with a data folder of its own, and gives the tests what they need to look at it.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const root = path.resolve(import.meta.dirname, '../..');
const build = process.env.MOLLY_BUILD ?? path.join(root, 'build/release');
const binary = path.join(build, 'molly');
export const model = process.env.MOLLY_TEST_MODEL ?? path.join(build, 'models/molly-test.gguf');

/** A `[[target]]` of the configuration that points at a mock or at another node. */
export function target(name, tier, port, options = {}) {
    const fields = {
        name, tier, url: `http://127.0.0.1:${port}/v1`, dialect: 'openai', model: `${name}-model`, controller: 'me',
        capabilities: ['chat', 'embed', 'tools', 'json_schema', 'logprobs'], context_tokens_max: 8192,
        quality: 0.5, first_token_ms: 50, tokens_per_second: 1000, ...options,
    };
    return `[[target]]\n${Object.entries(fields).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join('\n')}\n`;
}

function configuration({ targets = [], gateway = {}, engine = {}, extra = '' }) {
    const table = (name, fields) => `[${name}]\n${Object.entries(fields).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join('\n')}\n`;
    return [
        table('gateway', { port: 0, body_timeout_ms: 3000, stop_patience_ms: 2000, ...gateway }),
        table('log', { level: 'warning' }),
        table('engine', { model, threads: 1, answer_tokens_default: 64, ...engine }),
        extra,
        ...targets,
    ].join('\n');
}

// A test that ends early leaves no server behind.
const running = new Set();
process.on('exit', () => running.forEach((server) => server.kill('SIGKILL')));
process.once('SIGTERM', () => process.exit(1));

export class Molly {
    #process;
    #log = '';
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'molly-e2e-'));
    port = 0;
    /** The admin key of the first start. */
    key = '';

    /** Starts a node: `targets` from target(), tables `gateway` and `engine`, and `extra` configuration text. */
    static async start(options = {}) {
        const molly = new Molly();
        await molly.launch(options);
        return molly;
    }

    get url() {
        return `http://127.0.0.1:${this.port}`;
    }
    get pid() {
        return this.#process.pid;
    }
    get log() {
        return this.#log;
    }
    get data() {
        return path.join(this.folder, 'data');
    }

    /** Starts the server on this node's data folder; a second time after stop() or kill(), too. */
    async launch(options) {
        this.options = options ?? this.options;
        const file = path.join(this.folder, 'molly.toml');
        fs.writeFileSync(file, configuration(this.options));
        const environment = { ...process.env, LANG: 'C.UTF-8', HOME: this.folder };
        const server = spawn(binary, ['serve', '--json', '--config', file, '--data', this.data], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
        this.#process = server;
        this.exited = once(server, 'exit');
        running.add(server);
        server.once('exit', () => running.delete(server));
        server.stderr.on('data', (piece) => { this.#log += piece; });
        const ready = await this.#ready(server);
        assert.equal(ready.event, 'ready', JSON.stringify(ready));
        this.port = ready.port;
        this.key = ready.key ?? this.key;
    }

    /** The line with which the server says that it listens. */
    async #ready(server) {
        let said = '';
        const ready = new Promise((resolve) => {
            server.stdout.on('data', (piece) => {
                said += piece;
                if (said.includes('\n'))
                    resolve(JSON.parse(said.slice(0, said.indexOf('\n'))));
            });
        });
        const ended = this.exited.then(() => assert.fail(`molly serve ended:\n${this.#log}`));
        const late = sleep(30_000, undefined, { ref: false }).then(() => assert.fail(`molly serve did not come up:\n${this.#log}`));
        return Promise.race([ready, ended, late]);
    }

    /** Ends it as an owner does. */
    async stop() {
        if (this.#process.exitCode === null && this.#process.signalCode === null)
            this.#process.kill('SIGTERM');
        await this.exited;
        return this.#process.exitCode;
    }

    /** Ends it as a crash does. */
    async kill() {
        this.#process.kill('SIGKILL');
        await this.exited;
    }

    /** Stops it and removes its folder. */
    async remove() {
        await this.stop();
        fs.rmSync(this.folder, { recursive: true, force: true });
    }

    /** Runs one sub-command on this node's data folder. */
    command(...words) {
        return this.run([...words, '--config', path.join(this.folder, 'molly.toml'), '--data', this.data]);
    }

    /** Runs the binary. */
    run(words) {
        return new Promise((resolve) => {
            const options = { encoding: 'utf8', timeout: 60_000, env: { ...process.env, LANG: 'C.UTF-8', HOME: this.folder } };
            const ran = execFile(binary, words, options, (error, stdout, stderr) => resolve({ status: error?.code ?? 0, stdout, stderr }));
            ran.stdin.end();  // what is piped in becomes part of a question
        });
    }

    /** A raw request; gives status, headers, text and, where it is JSON, json. */
    async fetch(where, { method, body, key = this.key, headers = {}, ...rest } = {}) {
        const reply = await fetch(this.url + where, {
            method: method ?? (body === undefined ? 'GET' : 'POST'),
            headers: { ...(key && { authorization: `Bearer ${key}` }), 'content-type': 'application/json', ...headers },
            body: body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
            ...rest,
        });
        const text = await reply.text();
        let json;
        try {
            json = JSON.parse(text);
        } catch {
            // not JSON: the caller looks at the text
        }
        return { status: reply.status, headers: reply.headers, text, json };
    }

    /** One chat through the OpenAI face, by bare HTTP. */
    chat(content, { key, headers, ...fields } = {}) {
        const body = { model: 'auto', max_tokens: 8, messages: [{ role: 'user', content }], ...fields };
        return this.fetch('/v1/chat/completions', { body, key, headers });
    }

    /** Makes a key of that scope and gives its text. */
    async make_key(scope) {
        return (await this.new_key(scope)).key;
    }

    async new_key(scope) {
        const made = await this.fetch('/molly/v1/keys', { body: scope });
        assert.equal(made.status, 201, made.text);
        return made.json;
    }

    /** The trace of a request, as soon as it is committed. */
    async trace(id) {
        return this.#eventually(`/molly/v1/traces/${id}`);
    }

    async receipt(id) {
        return this.#eventually(`/molly/v1/receipts/${id}`);
    }

    // A cancelled request has no last byte to wait for, so its record may come after the caller has gone.
    async #eventually(where) {
        assert.ok(!where.endsWith('/undefined') && !where.endsWith('/null'), 'no id to look for');
        for (let tries = 0; tries < 200; ++tries) {
            const found = await this.fetch(where);
            if (found.status === 200)
                return found.json;
            assert.equal(found.status, 404, found.text);
            await sleep(25);
        }
        return assert.fail(`nothing at ${where}`);
    }

    /** Resident memory in bytes. */
    resident() {
        return Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${this.pid}/status`, 'utf8'))[1]) * 1024;
    }
}

/** Parses a body of server-sent events into [{event, data}]; data is the raw text. */
export function events_of(text) {
    return text.split('\n\n').filter((frame) => frame.trim() && !frame.startsWith(':')).map((frame) => {
        const lines = frame.split('\n');
        const field = (name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim()).join('\n');
        return { event: field('event'), data: field('data') };
    });
}

/** Waits until `condition` holds. */
export async function until(condition, what, limit_ms = 5000) {
    for (const end = Date.now() + limit_ms; Date.now() < end; await sleep(10))
        if (await condition())
            return;
    assert.fail(`not within ${limit_ms} ms: ${what}`);
}
