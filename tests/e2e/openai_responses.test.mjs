// The `openai` client on /v1/responses.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { assert_contract, assert_event_contract } from './contract.mjs';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

let molly;
let studio;
let client;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.1 })] });
    client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

const weather = {
    type: 'function', name: 'get_weather', description: 'Weather in a city', strict: true,
    parameters: { type: 'object', additionalProperties: false, required: ['city'], properties: { city: { type: 'string' } } },
};

async function collect(stream) {
    const events = [];
    for await (const event of stream) {
        assert_event_contract(event);
        events.push(event);
    }
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, at) => at));
    return events;
}

describe('responses', () => {
    test('answers, with everything that a Response holds', async () => {
        const { data, response } = await client.responses
            .create({ model: 'local', input: 'Ciao', max_output_tokens: 24, temperature: 0, metadata: { from: 'e2e' } }).withResponse();
        const { output_text, ...body } = data;
        assert_contract('Response', body);
        assert.ok(output_text.length > 0);
        assert.equal(data.status, data.incomplete_details ? 'incomplete' : 'completed');
        assert.equal(data.usage.total_tokens, data.usage.input_tokens + data.usage.output_tokens);
        assert.deepEqual(data.metadata, { from: 'e2e' });
        assert.equal(response.headers.get('x-molly-tier'), 'T0');
    });

    test('streams typed events in order, and the same words', async () => {
        const request = { model: 'local', input: [{ role: 'user', content: 'Ciao' }], instructions: 'Be brief.', max_output_tokens: 300, temperature: 0 };
        const whole = await client.responses.create(request);
        const events = await collect(await client.responses.create({ ...request, stream: true }));
        const types = events.map((event) => event.type);
        assert.deepEqual(types.slice(0, 2), ['response.created', 'response.in_progress']);
        const expected = ['response.output_item.added', 'response.content_part.added', 'response.output_text.delta',
            'response.output_text.done', 'response.content_part.done', 'response.output_item.done'];
        const places = expected.map((type) => types.indexOf(type));
        assert.deepEqual(places, places.toSorted((a, b) => a - b));
        assert.ok(places[0] >= 0, types.join());
        assert.equal(types.at(-1), whole.status === 'completed' ? 'response.completed' : 'response.incomplete');
        const text = events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join('');
        assert.equal(text, whole.output_text);
        assert.equal(events.find((event) => event.type === 'response.output_text.done').text, text);
    });

    test('says incomplete at the token limit', async () => {
        const data = await client.responses.create({ model: 'local', input: 'Ciao', max_output_tokens: 3 });
        assert.equal(data.status, 'incomplete');
        assert.equal(data.incomplete_details.reason, 'max_output_tokens');
    });

    test('goes on from a stored response', async () => {
        studio.reset();
        studio.next({ text: ['The number is 42.'] });
        const first = await client.responses.create({ model: 'studio', input: 'Remember a number.', instructions: 'only the first time' });
        const second = await client.responses.create({ model: 'studio', input: 'Which one?', previous_response_id: first.id });
        assert.equal(second.previous_response_id, first.id);
        const { messages } = studio.calls[1].json;
        const roles = messages.map((message) => message.role);
        assert.deepEqual(roles, ['user', 'assistant', 'user'], 'earlier instructions do not carry over');
        assert.deepEqual(messages.map((message) => message.content), ['Remember a number.', 'The number is 42.', 'Which one?']);
        const third = await client.responses.create({ model: 'studio', input: 'And?', previous_response_id: second.id });
        assert.equal(studio.calls[2].json.messages.length, 5);
        assert.ok(third.id);
    });

    test('retrieves and deletes what it stored, for its member only', async () => {
        const made = await client.responses.create({ model: 'studio', input: 'Hello' });
        const got = await client.responses.retrieve(made.id);
        assert.equal(got.id, made.id);
        assert.equal(got.output_text, made.output_text);
        const other = new OpenAI({ apiKey: await molly.make_key({ member: 'somebody' }), baseURL: `${molly.url}/v1`, maxRetries: 0 });
        await assert.rejects(other.responses.retrieve(made.id), { status: 404 });
        await assert.rejects(other.responses.create({ model: 'studio', input: 'x', previous_response_id: made.id }), { status: 404 });
        await client.responses.delete(made.id);
        await assert.rejects(client.responses.retrieve(made.id), { status: 404 });
    });

    test('keeps nothing when told so, or when the label says so', async () => {
        const unstored = await client.responses.create({ model: 'studio', input: 'Hello', store: false });
        await assert.rejects(client.responses.create({ model: 'studio', input: 'x', previous_response_id: unstored.id }), { status: 404 });
        const secret = await client.responses.create({ model: 'local', input: 'Hello', max_output_tokens: 16, molly: { class: 'secret' } });
        await assert.rejects(client.responses.retrieve(secret.id), { status: 404 });
    });

    for (const stream of [false, true])
        test(`calls a function and takes its output back (stream ${stream})`, async () => {
            studio.reset();
            studio.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma' } }] });
            const request = { model: 'studio', input: 'Weather in Roma?', tools: [weather] };
            let made;
            if (stream) {
                const events = await collect(await client.responses.create({ ...request, stream: true }));
                made = events.at(-1).response;
                const deltas = events.filter((event) => event.type === 'response.function_call_arguments.delta');
                assert.deepEqual(JSON.parse(deltas.map((event) => event.delta).join('')), { city: 'Roma' });
            } else {
                made = await client.responses.create(request);
                assert_contract('Response', JSON.parse(JSON.stringify({ ...made, output_text: undefined })));
            }
            const call = made.output.find((item) => item.type === 'function_call');
            assert.equal(call.name, 'get_weather');
            assert.deepEqual(JSON.parse(call.arguments), { city: 'Roma' });
            const end = await client.responses.create({
                model: 'studio', tools: [weather], previous_response_id: made.id,
                input: [{ type: 'function_call_output', call_id: call.call_id, output: 'Sunny' }],
            });
            assert.equal(end.output_text, 'Hello from studio');
            const { messages } = studio.calls[1].json;
            assert.equal(messages.at(-1).role, 'tool');
            assert.equal(messages.at(-1).content, 'Sunny');
            assert.equal(messages.at(-2).tool_calls[0].id, messages.at(-1).tool_call_id);
        });

    test('keeps to a schema', async () => {
        const schema = { type: 'object', additionalProperties: false, required: ['ok'], properties: { ok: { type: 'boolean' } } };
        const data = await client.responses.create({
            model: 'local', input: 'Is it so?', max_output_tokens: 100, text: { format: { type: 'json_schema', name: 'answer', strict: true, schema } },
        });
        assert.equal(typeof JSON.parse(data.output_text).ok, 'boolean');
    });

    test('refuses in its own shape', async () => {
        await assert.rejects(client.responses.create({ model: 'local' }), { status: 400 });
        await assert.rejects(client.responses.create({ model: 'nobody', input: 'x' }), { status: 404, code: 'model_not_found' });
        await assert.rejects(client.responses.create({ model: 'local', input: 'x', previous_response_id: 'resp_none' }), { status: 404 });
    });

    test('an upstream that dies ends the stream as failed', async () => {
        studio.next({ text: ['one ', 'two '], die_after: 1 });
        const events = [];
        try {
            for await (const event of await client.responses.create({ model: 'studio', input: 'x', stream: true }))
                events.push(event);
        } catch {
            // a client may raise the error event instead of handing it over
        }
        assert.ok(!events.some((event) => event.type === 'response.completed'), 'death looks like success');
        const raw = await molly.fetch('/v1/responses', { body: { model: 'studio', input: 'x', stream: true } });
        assert.equal(raw.status, 200);
    });
});
