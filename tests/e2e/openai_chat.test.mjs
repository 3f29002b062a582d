// The `openai` client, both majors, on /v1/chat/completions: T0 is the engine, T1 a scripted upstream.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createRequire } from 'node:module';
import Ajv from 'ajv/dist/2020.js';
import OpenAI from 'openai';
import { z } from 'zod';
import { zodResponseFormat } from 'openai/helpers/zod';
import { assert_contract } from './contract.mjs';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target, until } from './molly.mjs';

// LangChain still builds on the major before.
const OlderOpenAI = createRequire(createRequire(import.meta.url).resolve('@langchain/openai'))('openai');

const say = (content) => [{ role: 'user', content }];
const question = say('Ciao, how are you today?');
const person = {
    type: 'object', additionalProperties: false, required: ['name', 'age', 'city'],
    properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 130 }, city: { enum: ['Roma', 'Milano'] } },
};
const weather = {
    type: 'function',
    function: {
        name: 'get_weather', description: 'Weather in a city', strict: true,
        parameters: { type: 'object', additionalProperties: false, required: ['city'], properties: { city: { enum: ['Roma', 'Oslo'] } } },
    },
};

let molly;
let studio;

before(async () => {
    studio = await MockUpstream.start({ name: 'studio' });
    molly = await Molly.start({ targets: [target('studio', 'T1', studio.port, { quality: 0.1 })] });
});
after(async () => {
    await molly?.remove();
    await studio?.stop();
});

async function collect(stream) {
    const seen = { chunks: [], text: '', finish: undefined, usages: [] };
    for await (const chunk of stream) {
        assert_contract('CreateChatCompletionStreamResponse', chunk);
        seen.chunks.push(chunk);
        seen.text += chunk.choices[0]?.delta.content ?? '';
        seen.finish = chunk.choices[0]?.finish_reason ?? seen.finish;
        if (chunk.usage)
            seen.usages.push(chunk);
    }
    return seen;
}

for (const [major, Client] of [['7', OpenAI], ['6', OlderOpenAI]]) {
    describe(`openai ${major}`, () => {
        let client;
        before(() => {
            client = new Client({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        });

        test('answers a chat, and says in headers who answered', async () => {
            const { data, response } = await client.chat.completions.create({ model: 'local', messages: question, max_tokens: 12 }).withResponse();
            assert_contract('CreateChatCompletionResponse', data);
            assert.equal(data.choices[0].message.role, 'assistant');
            assert.ok(data.choices[0].message.content.length > 0);
            assert.ok(data.usage.prompt_tokens > 0 && data.usage.completion_tokens > 0 && data.usage.completion_tokens <= 12);
            assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + data.usage.completion_tokens);
            assert.equal(response.headers.get('x-molly-tier'), 'T0');
            assert.equal(response.headers.get('x-molly-target'), 'local');
            const receipt = await molly.receipt(response.headers.get('x-molly-receipt'));
            assert.ok(receipt);
        });

        test('streams the same words as the whole answer, with one finish', async () => {
            const request = { model: 'local', messages: question, max_tokens: 24, temperature: 0 };
            const whole = await client.chat.completions.create(request);
            const streamed = await collect(await client.chat.completions.create({ ...request, stream: true }));
            assert.equal(streamed.text, whole.choices[0].message.content);
            assert.equal(streamed.finish, whole.choices[0].finish_reason);
            assert.equal(streamed.chunks.filter((chunk) => chunk.choices[0]?.finish_reason).length, 1);
            assert.equal(streamed.chunks[0].choices[0].delta.role, 'assistant');
            assert.equal(new Set(streamed.chunks.map((chunk) => chunk.id)).size, 1);
            assert.equal(streamed.usages.length, 0, 'usage that nobody asked for');
        });

        test('gives usage in one chunk without choices, just before the end (case 5)', async () => {
            const stream = await client.chat.completions.create({
                model: 'local', messages: question, max_tokens: 8, stream: true, stream_options: { include_usage: true },
            });
            const { chunks, usages } = await collect(stream);
            assert.equal(usages.length, 1);
            assert.equal(usages[0], chunks.at(-1));
            assert.deepEqual(usages[0].choices, []);
            assert.ok(usages[0].usage.completion_tokens > 0);
            for (const chunk of chunks.slice(0, -1))
                assert.equal(chunk.usage, null);
        });

        test('stops at the token limit and says so', async () => {
            const { choices, usage } = await client.chat.completions.create({ model: 'local', messages: question, max_completion_tokens: 3 });
            assert.equal(choices[0].finish_reason, 'length');
            assert.equal(usage.completion_tokens, 3);
        });

        test('streams to the end helper', async () => {
            const runner = client.chat.completions.stream({ model: 'local', messages: question, max_tokens: 16, temperature: 0 });
            const completion = await runner.finalChatCompletion();
            assert.ok(completion.choices[0].message.content.length > 0);
        });
    });
}

describe('sampling', () => {
    let client;
    before(() => {
        client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
    });
    const text_of = async (fields) => {
        const { choices } = await client.chat.completions.create({ model: 'local', messages: question, max_tokens: 24, ...fields });
        return choices[0].message.content;
    };

    test('temperature 0 repeats itself; a seed does too', async () => {
        assert.equal(await text_of({ temperature: 0 }), await text_of({ temperature: 0 }));
        const one = await text_of({ temperature: 1.2, seed: 7 });
        assert.equal(await text_of({ temperature: 1.2, seed: 7 }), one);
        const others = await Promise.all([1, 2, 3].map((seed) => text_of({ temperature: 1.2, seed })));
        assert.ok(others.some((other) => other !== one), 'the seed changes nothing');
    });

    test('holds back a stop string, whole or streamed (case 8)', async () => {
        const full = await text_of({ temperature: 0 });
        const middle = Math.floor(full.length / 2);
        const stop = [full.slice(middle, middle + 7)];
        const expected = full.slice(0, full.indexOf(stop[0]));
        const request = { model: 'local', messages: question, max_tokens: 24, temperature: 0, stop };
        const whole = await client.chat.completions.create(request);
        assert.equal(whole.choices[0].message.content, expected);
        assert.equal(whole.choices[0].finish_reason, 'stop');
        const streamed = await collect(await client.chat.completions.create({ ...request, stream: true }));
        assert.equal(streamed.text, expected);
        assert.equal(streamed.finish, 'stop');
        const absent = await text_of({ temperature: 0, stop: [`${full.slice(-4)}\nUser:`] });
        assert.equal(absent, full, 'text held for a stop that never came is lost');
    });

    test('gives log-probabilities, whole and streamed', async () => {
        const request = { model: 'local', messages: question, max_tokens: 6, temperature: 0, logprobs: true, top_logprobs: 3 };
        const whole = await client.chat.completions.create(request);
        assert_contract('CreateChatCompletionResponse', whole);
        const tokens = whole.choices[0].logprobs.content;
        assert.equal(tokens.length, whole.usage.completion_tokens);
        assert.equal(tokens.map((token) => token.token).join(''), whole.choices[0].message.content);
        for (const { logprob, top_logprobs } of tokens) {
            assert.ok(logprob <= 0);
            assert.equal(top_logprobs.length, 3);
            assert.ok(top_logprobs[0].logprob >= top_logprobs[1].logprob);
            assert.equal(top_logprobs[0].logprob, logprob, 'greedy takes the likeliest');
        }
        const streamed = await collect(await client.chat.completions.create({ ...request, stream: true }));
        const pieces = streamed.chunks.flatMap((chunk) => chunk.choices[0]?.logprobs?.content ?? []);
        assert.deepEqual(pieces.map((token) => token.token), tokens.map((token) => token.token));
    });

    test('answers several at once', async () => {
        const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => text_of({ messages: say(`Question ${at}`), temperature: 0 })));
        const again = await text_of({ messages: say('Question 5'), temperature: 0 });
        assert.ok(answers.every((answer) => answer.length > 0));
        assert.equal(typeof again, 'string');
    });
});

describe('structured output', () => {
    let client;
    before(() => {
        client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
    });
    const response_format = { type: 'json_schema', json_schema: { name: 'person', strict: true, schema: person } };
    const validate = new Ajv().compile(person);

    for (const temperature of [0, 1])
        test(`a strict schema always validates (temperature ${temperature})`, async () => {
            for (const seed of [1, 2, 3]) {
                const { choices } = await client.chat.completions.create({
                    model: 'local', messages: say('Who is it?'), max_tokens: 200, temperature, seed, response_format,
                });
                assert.equal(choices[0].finish_reason, 'stop');
                const parsed = JSON.parse(choices[0].message.content);
                assert.ok(validate(parsed), JSON.stringify(parsed));
            }
        });

    test('validates when streamed', async () => {
        const stream = await client.chat.completions.create({
            model: 'local', messages: say('Who is it?'), max_tokens: 200, stream: true, response_format,
        });
        const { text } = await collect(stream);
        assert.ok(validate(JSON.parse(text)));
    });

    test('parses into a zod type', async () => {
        const Answer = z.object({ ok: z.boolean(), kind: z.enum(['a', 'b']) });
        const completion = await client.chat.completions.parse({
            model: 'local', messages: question, max_tokens: 100, response_format: zodResponseFormat(Answer, 'answer'),
        });
        assert.equal(typeof completion.choices[0].message.parsed.ok, 'boolean');
    });

    test('a schema that cannot be kept is refused, or kept (case 13)', async () => {
        const schema = { type: 'object', additionalProperties: false, required: ['w'], properties: { w: { type: 'string', pattern: '^hello\\\\!$' } } };
        const request = { model: 'local', messages: question, max_tokens: 60, response_format: { type: 'json_schema', json_schema: { name: 'w', strict: true, schema } } };
        try {
            const { choices } = await client.chat.completions.create(request);
            assert.ok(new Ajv().compile(schema)(JSON.parse(choices[0].message.content)));
        } catch (error) {
            assert.equal(error.status, 400, String(error));
        }
    });

    test('json_object gives JSON', async () => {
        const { choices } = await client.chat.completions.create({
            model: 'local', messages: say('Answer in JSON.'), max_tokens: 400, temperature: 0, response_format: { type: 'json_object' },
        });
        assert.equal(choices[0].message.content.trimStart()[0], '{');
        if (choices[0].finish_reason === 'stop')
            assert.equal(typeof JSON.parse(choices[0].message.content), 'object');
    });
});

describe('tools', () => {
    let client;
    before(() => {
        client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        studio.reset();
    });
    const ask = { messages: say('What is the weather in Roma?'), tools: [weather], max_tokens: 120 };
    const validate = new Ajv().compile(weather.function.parameters);

    test('the engine calls a required tool with arguments that validate', async () => {
        const { choices } = await client.chat.completions.create({ ...ask, model: 'local', tool_choice: 'required', temperature: 0 });
        assert.equal(choices[0].finish_reason, 'tool_calls');
        const [call] = choices[0].message.tool_calls;
        assert.equal(call.function.name, 'get_weather');
        assert.ok(call.id);
        assert.ok(validate(JSON.parse(call.function.arguments)), call.function.arguments);
    });

    test('the engine streams a named tool call, and takes its result back', async () => {
        const tool_choice = { type: 'function', function: { name: 'get_weather' } };
        const runner = client.chat.completions.stream({ ...ask, model: 'local', tool_choice, temperature: 0 });
        const message = await runner.finalMessage();
        const [call] = message.tool_calls;
        assert.ok(validate(JSON.parse(call.function.arguments)));
        const messages = [...ask.messages, message, { role: 'tool', tool_call_id: call.id, content: '{"celsius": 21}' }];
        const { choices } = await client.chat.completions.create({ model: 'local', messages, tools: [weather], max_tokens: 60, temperature: 0 });
        assert.ok(['stop', 'length', 'tool_calls'].includes(choices[0].finish_reason));
    });

    test('tool_choice none calls nothing', async () => {
        const { choices } = await client.chat.completions.create({ ...ask, model: 'local', tool_choice: 'none', max_tokens: 40, temperature: 0 });
        assert.equal(choices[0].message.tool_calls, undefined);
    });

    for (const stream of [false, true])
        test(`a call and its result go through T1 unharmed (stream ${stream})`, async () => {
            studio.reset();
            studio.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma', quote: 'a "b" \u{1F600}' } }] });
            const request = { ...ask, model: 'studio', tool_choice: 'auto', parallel_tool_calls: false };
            const message = stream
                ? await client.chat.completions.stream(request).finalMessage()
                : (await client.chat.completions.create(request)).choices[0].message;
            assert.equal(message.tool_calls.length, 1);
            assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: 'Roma', quote: 'a "b" \u{1F600}' });
            const sent = studio.calls[0].json;
            assert.deepEqual(sent.tools[0].function.parameters, weather.function.parameters);
            assert.equal(sent.model, 'studio-model');

            const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '21 degrees' };
            const end = await client.chat.completions.create({ ...request, messages: [...ask.messages, message, result] });
            assert.equal(end.choices[0].message.content, 'Hello from studio');
            const back = studio.calls[1].json.messages.at(-1);
            assert.equal(back.role, 'tool');
            assert.equal(back.tool_call_id, message.tool_calls[0].id);
            assert.equal(back.content, '21 degrees');
        });
});

describe('leaving', () => {
    test('a caller that leaves cancels the engine within a step, and the trace says so', async () => {
        const client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const request = { model: 'local', messages: question, max_tokens: 4000, stream: true, logit_bias: undefined, response_format: {
            type: 'json_schema', json_schema: { name: 'long', strict: true, schema: { type: 'array', minItems: 2000, items: { type: 'integer' } } },
        } };
        const { data: stream, response } = await client.chat.completions.create(request).withResponse();
        let seen = 0;
        for await (const chunk of stream) {
            seen += chunk.choices.length;
            if (seen === 4)
                stream.controller.abort();
        }
        const trace = await molly.trace(response.headers.get('x-molly-receipt'));
        assert.equal(trace.outcome, 'cancelled');
        assert.ok(trace.usage.answer_tokens < 1000, JSON.stringify(trace.usage));
    });

    test('and an upstream, whose connection is closed', async () => {
        studio.reset();
        studio.next({ text: ['one ', 'two ', 'three '], hang_after: 2 });
        const client = new OpenAI({ apiKey: molly.key, baseURL: `${molly.url}/v1`, maxRetries: 0 });
        const { data: stream, response } = await client.chat.completions.create({ model: 'studio', messages: question, stream: true }).withResponse();
        let left_at;
        for await (const chunk of stream)
            if (chunk.choices[0]?.delta.content === 'two ') {
                left_at = Date.now();
                stream.controller.abort();
            }
        await until(() => studio.calls[0].closed, 'the upstream is left too', 2000);
        assert.ok(studio.calls[0].closed_at - left_at < 1000);
        assert.equal((await molly.trace(response.headers.get('x-molly-receipt'))).outcome, 'cancelled');
    });
});
