// A scripted upstream on loopback. It speaks the OpenAI, Anthropic and Ollama dialects, does what the next script says,
// and remembers every request that it got, so that a test can say what reached it and what did not.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const default_usage = { prompt_tokens: 11, completion_tokens: 3, total_tokens: 14 };

/** A certificate for this machine, made in `folder`: its PEM file, for clients, and what a server needs. */
export function make_certificate(folder) {
    const file = path.join(folder, 'certificate.pem');
    const key_file = path.join(folder, 'certificate.key');
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost',
        '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-keyout', key_file, '-out', file], { stdio: 'ignore' });
    return { file, key: fs.readFileSync(key_file), cert: fs.readFileSync(file) };
}

/**
 * What one reply does; every field is optional.
 * text             the pieces of the answer, one delta each, or a function of the request's record that gives them
 * tool_calls       [{name, arguments}]: the answer calls these (arguments is an object), or a function that gives them
 * reasoning        pieces of reasoning before the text (OpenAI dialect)
 * usage            as the OpenAI dialect spells it
 * usage_in         'own' chunk after the finish (the rule), the 'finish' chunk, the 'middle' one, or 'none'
 * wait_ms          before the status line
 * gap_ms           before each piece
 * die_after        destroys the connection after so many pieces
 * hang_after       sends nothing more after so many pieces, and keeps the connection
 * malformed_after  sends a frame that is not JSON after so many pieces
 * error_after      sends an error frame after so many pieces
 * unended          closes the body properly after the pieces, without a finish and the dialect's own terminator
 * cut_bytes        cuts the body into segments of so many bytes, inside code points too
 * status, headers, body   a plain reply instead of an answer
 */
export class MockUpstream {
    #server;
    #sockets = new Set();
    #scripts = [];
    #model;
    requests = [];
    port = 0;

    /** Starts one; `name` appears in its default answer, `tls` is from make_certificate. Port 0 takes any free one. */
    static async start({ name = 'mock', model = 'mock-model', port = 0, tls } = {}) {
        const mock = new MockUpstream();
        mock.name = name;
        mock.#model = model;
        const serve = (request, response) => mock.#serve(request, response);
        mock.#server = tls ? https.createServer(tls, serve) : http.createServer(serve);
        mock.#server.on('connection', (socket) => {
            mock.#sockets.add(socket);
            socket.on('close', () => mock.#sockets.delete(socket));
        });
        mock.#server.keepAliveTimeout = 60_000;
        mock.#server.listen(port, '127.0.0.1');
        await once(mock.#server, 'listening');
        mock.port = mock.#server.address().port;
        return mock;
    }

    /** The next requests for an answer follow these scripts, in turn; then the default answer again. */
    next(...scripts) {
        this.#scripts.push(...scripts);
    }

    /** Forgets scripts and requests. */
    reset() {
        this.#scripts = [];
        this.requests = [];
    }

    /** The requests for an answer: probes (GET) left out. */
    get calls() {
        return this.requests.filter((request) => request.method === 'POST');
    }

    /** Whether `text` reached this upstream in any form: request line, header or body, escaped or not. */
    saw(text) {
        const escaped = JSON.stringify(text).slice(1, -1);
        return this.requests.some((request) => {
            const all = `${request.method} ${request.path}\n${JSON.stringify(request.headers)}\n${request.body}`;
            return all.includes(text) || all.includes(escaped);
        });
    }

    /** Stops listening and drops every connection: the target is down. */
    async stop() {
        this.#server.close();
        for (const socket of this.#sockets)
            socket.destroy();
        if (this.#server.listening)
            await once(this.#server, 'close');
    }

    async #serve(request, response) {
        const record = { method: request.method, path: request.url, headers: request.headers, body: '', closed: false };
        this.requests.push(record);
        response.on('close', () => {
            record.closed = !response.writableFinished;
            record.closed_at = Date.now();
        });
        response.on('error', () => {});
        try {
            for await (const piece of request)
                record.body += piece;
            record.json = record.body ? JSON.parse(record.body) : undefined;
            await this.#answer(request.method, new URL(request.url, 'http://x').pathname, record, response);
        } catch (error) {
            if (!response.headersSent)
                response.writeHead(400, { 'content-type': 'application/json' });
            response.end(JSON.stringify({ error: { message: String(error), type: 'mock_error' } }));
        }
    }

    async #answer(method, path, record, response) {
        if (method === 'GET')
            return send_json(response, 200, listing(path, this.#model));
        if (path.endsWith('/api/show'))
            return send_json(response, 200, { details: {}, model_info: {} });
        const script = this.#scripts.shift() ?? {};
        await sleep(script.wait_ms ?? 0);
        if (script.status)
            return send_json(response, script.status, script.body ?? { error: { message: 'scripted' } }, script.headers);
        if (path.endsWith('/embeddings') || path.endsWith('/api/embed'))
            return send_json(response, 200, embeddings(path, record.json, this.#model));
        const of = (value) => (typeof value === 'function' ? value(record) : value);
        const facts = {
            model: record.json.model ?? this.#model,
            text: of(script.text) ?? (script.tool_calls ? [] : ['Hello ', 'from ', this.name]),
            reasoning: script.reasoning ?? [],
            tool_calls: of(script.tool_calls) ?? [],
            usage: script.usage ?? default_usage,
            usage_in: script.usage_in ?? (record.json.stream_options?.include_usage ? 'own' : 'none'),
        };
        const dialect = dialect_of(path);
        const stream = dialect === ollama ? record.json.stream !== false : record.json.stream === true;
        if (!stream)
            return send_json(response, 200, dialect.whole(facts), script.headers);
        await send_stream(response, dialect, facts, script);
    }
}

function listing(path, model) {
    if (path.endsWith('/api/tags'))
        return { models: [{ name: model, model, size: 1, digest: '0'.repeat(64), details: {} }] };
    if (path.endsWith('/api/version'))
        return { version: '0.6.0' };
    return { object: 'list', data: [{ id: model, object: 'model', created: 1, owned_by: 'mock' }] };
}

function embeddings(path, body, model) {
    const inputs = [body.input].flat();
    const vectors = inputs.map((text) => [String(text).length, 1, 0, -1].map((x) => x / 1024));
    if (path.endsWith('/api/embed'))
        return { model, embeddings: vectors, prompt_eval_count: inputs.length };
    const coded = body.encoding_format === 'base64'
        ? vectors.map((vector) => Buffer.from(new Float32Array(vector).buffer).toString('base64'))
        : vectors;
    return {
        object: 'list', model, usage: { prompt_tokens: inputs.length, total_tokens: inputs.length },
        data: coded.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    };
}

function send_json(response, status, body, headers = {}) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

async function send_stream(response, dialect, facts, script) {
    response.writeHead(200, { 'content-type': dialect.media_type, 'cache-control': 'no-cache', ...script.headers });
    response.flushHeaders();
    const write = async (bytes) => {
        const all = Buffer.from(bytes);
        const step = script.cut_bytes ?? all.length;
        for (let at = 0; at < all.length; at += step) {
            response.write(all.subarray(at, at + step));
            if (script.cut_bytes)
                await sleep(1);
        }
    };
    let sent = 0;
    for (const { piece, finish, frame } of dialect.frames(facts)) {
        if (finish && script.unended)
            break;
        if (piece) {
            if (sent === script.die_after)
                return response.destroy();
            if (sent === script.hang_after)
                return undefined;
            if (sent === script.malformed_after)
                await write(dialect.malformed);
            if (sent === script.error_after) {
                await write(dialect.error);
                return response.end();
            }
            await sleep(script.gap_ms ?? 0);
            ++sent;
        }
        await write(frame);
    }
    if (sent === script.die_after)
        return response.destroy();
    if (sent === script.hang_after)
        return undefined;
    if (!script.unended)
        await write(dialect.terminator);
    return response.end();
}

const finish_of = (facts) => (facts.tool_calls.length ? 'tool_calls' : 'stop');
const sse = (value, event) => `${event ? `event: ${event}\n` : ''}data: ${JSON.stringify(value)}\n\n`;

const openai = {
    media_type: 'text/event-stream',
    malformed: 'data: {"choices":[{"delta":{"content":\n\n',
    error: sse({ error: { message: 'overloaded', type: 'server_error' } }),
    terminator: 'data: [DONE]\n\n',
    whole: (facts) => ({
        id: 'chatcmpl-mock', object: 'chat.completion', created: 1, model: facts.model, usage: facts.usage,
        choices: [{
            index: 0, finish_reason: finish_of(facts), logprobs: null,
            message: {
                role: 'assistant', content: facts.tool_calls.length ? null : facts.text.join(''), refusal: null,
                ...(facts.tool_calls.length && { tool_calls: facts.tool_calls.map(openai_call) }),
            },
        }],
    }),
    *frames(facts) {
        const chunk = (choices, usage) => sse({
            id: 'chatcmpl-mock', object: 'chat.completion.chunk', created: 1, model: facts.model, choices,
            ...(usage && { usage }),
        });
        const choice = (delta, finish_reason = null) => [{ index: 0, delta, finish_reason }];
        yield { frame: chunk(choice({ role: 'assistant', content: '' })) };
        for (const reasoning_content of facts.reasoning)
            yield { piece: true, frame: chunk(choice({ reasoning_content })) };
        for (const [at, content] of facts.text.entries()) {
            const usage = facts.usage_in === 'middle' && at === 0 ? facts.usage : undefined;
            yield { piece: true, frame: chunk(choice({ content }), usage) };
        }
        for (const [index, call] of facts.tool_calls.entries()) {
            const whole = openai_call(call, index);
            const half = Math.ceil(whole.function.arguments.length / 2);
            const first = { ...whole, index, function: { name: call.name, arguments: whole.function.arguments.slice(0, half) } };
            yield { piece: true, frame: chunk(choice({ tool_calls: [first] })) };
            const rest = { index, function: { arguments: whole.function.arguments.slice(half) } };
            yield { piece: true, frame: chunk(choice({ tool_calls: [rest] })) };
        }
        yield { finish: true, frame: chunk(choice({}, finish_of(facts)), facts.usage_in === 'finish' ? facts.usage : undefined) };
        if (facts.usage_in === 'finish')
            yield { frame: chunk([]) };
        if (facts.usage_in === 'own')
            yield { frame: chunk([], facts.usage) };
    },
};

function openai_call(call, index) {
    return { id: `call_mock_${index}`, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.arguments) } };
}

const anthropic_usage = (usage) => ({
    input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens,
    cache_read_input_tokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
});

const anthropic = {
    media_type: 'text/event-stream',
    malformed: 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":\n\n',
    error: sse({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }, 'error'),
    terminator: sse({ type: 'message_stop' }, 'message_stop'),
    whole: (facts) => ({
        id: 'msg_mock', type: 'message', role: 'assistant', model: facts.model, usage: anthropic_usage(facts.usage),
        stop_reason: facts.tool_calls.length ? 'tool_use' : 'end_turn', stop_sequence: null,
        content: [
            ...(facts.text.length ? [{ type: 'text', text: facts.text.join('') }] : []),
            ...facts.tool_calls.map((call, at) => ({ type: 'tool_use', id: `toolu_mock_${at}`, name: call.name, input: call.arguments })),
        ],
    }),
    *frames(facts) {
        const event = (value) => sse(value, value.type);
        const message = { ...anthropic.whole({ ...facts, text: [], tool_calls: [] }), content: [], stop_reason: null };
        yield { frame: event({ type: 'message_start', message }) };
        let index = 0;
        if (facts.text.length) {
            yield { frame: event({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }) };
            for (const text of facts.text)
                yield { piece: true, frame: event({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }) };
            yield { frame: event({ type: 'content_block_stop', index: index++ }) };
        }
        for (const call of facts.tool_calls) {
            const content_block = { type: 'tool_use', id: `toolu_mock_${index}`, name: call.name, input: {} };
            yield { frame: event({ type: 'content_block_start', index, content_block }) };
            const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.arguments) };
            yield { piece: true, frame: event({ type: 'content_block_delta', index, delta }) };
            yield { frame: event({ type: 'content_block_stop', index: index++ }) };
        }
        const stop_reason = facts.tool_calls.length ? 'tool_use' : 'end_turn';
        yield { finish: true, frame: event({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: anthropic_usage(facts.usage) }) };
    },
};

const ollama = {
    media_type: 'application/x-ndjson',
    malformed: '{"message":{"content":\n',
    error: `${JSON.stringify({ error: 'model runner has stopped' })}\n`,
    terminator: '',
    whole: (facts) => ({
        model: facts.model, created_at: '2026-01-01T00:00:00Z', done: true, done_reason: 'stop',
        message: {
            role: 'assistant', content: facts.text.join(''),
            ...(facts.tool_calls.length && { tool_calls: facts.tool_calls.map((call) => ({ function: call })) }),
        },
        prompt_eval_count: facts.usage.prompt_tokens, eval_count: facts.usage.completion_tokens,
    }),
    *frames(facts) {
        const line = (value) => `${JSON.stringify(value)}\n`;
        const base = { model: facts.model, created_at: '2026-01-01T00:00:00Z' };
        for (const content of facts.text)
            yield { piece: true, frame: line({ ...base, message: { role: 'assistant', content }, done: false }) };
        const last = ollama.whole({ ...facts, text: [] });
        yield { finish: true, frame: line(last) };
    },
};

function dialect_of(path) {
    if (path.endsWith('/messages'))
        return anthropic;
    return path.includes('/api/') ? ollama : openai;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
    const mock = await MockUpstream.start({ port: Number(process.argv[2] ?? 18080) });
    console.log(`http://127.0.0.1:${mock.port}`);
}
