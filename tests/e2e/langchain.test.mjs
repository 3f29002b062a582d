// `@langchain/openai`.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import { MockUpstream } from './mock_upstream.mjs';
import { Molly, target } from './molly.mjs';

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

const chat = (fields) => new ChatOpenAI({ apiKey: molly.key, maxRetries: 0, configuration: { baseURL: `${molly.url}/v1` }, ...fields });
const question = [new HumanMessage('Ciao, how are you today?')];

test('invoke and stream say the same', async () => {
    const model = chat({ model: 'local', temperature: 0, maxTokens: 24 });
    const whole = await model.invoke(question);
    assert.ok(whole.content.length > 0);
    assert.ok(whole.usage_metadata.total_tokens > 0);
    let joined;
    for await (const piece of await model.stream(question))
        joined = joined === undefined ? piece : joined.concat(piece);
    assert.equal(joined.content, whole.content);
    assert.ok(joined.usage_metadata.output_tokens > 0, 'it asks for usage in the stream');
});

test('structured output is of its type', async () => {
    const Answer = z.object({ ok: z.boolean(), city: z.enum(['Roma', 'Milano']) });
    for (const method of ['jsonSchema', 'functionCalling']) {
        const model = chat({ model: 'local', temperature: 0, maxTokens: 150 }).withStructuredOutput(Answer, { name: 'answer', method });
        const answer = await model.invoke(question);
        assert.ok(Answer.safeParse(answer).success, `${method}: ${JSON.stringify(answer)}`);
    }
});

test('a tool is called and its result used', async () => {
    studio.reset();
    studio.next({ tool_calls: [{ name: 'get_weather', arguments: { city: 'Roma' } }] });
    const weather = tool(({ city }) => `Sunny in ${city}`, { name: 'get_weather', description: 'Weather in a city', schema: z.object({ city: z.string() }) });
    const model = chat({ model: 'studio' }).bindTools([weather]);
    const first = await model.invoke(question);
    assert.equal(first.tool_calls.length, 1);
    const result = await weather.invoke(first.tool_calls[0]);
    assert.ok(result instanceof ToolMessage);
    const end = await model.invoke([...question, first, result]);
    assert.equal(end.content, 'Hello from studio');
    assert.ok(studio.calls[1].body.includes('Sunny in Roma'));
});

test('the Responses face answers too', async () => {
    const answer = await chat({ model: 'local', maxTokens: 24, useResponsesApi: true }).invoke(question);
    assert.ok(answer.text.length > 0);
});

test('embeddings', async () => {
    const model = new OpenAIEmbeddings({ apiKey: molly.key, model: 'local', configuration: { baseURL: `${molly.url}/v1` } });
    const vectors = await model.embedDocuments(['Il gatto', 'A train']);
    assert.equal(vectors.length, 2);
    assert.equal(vectors[0].length, (await model.embedQuery('Il gatto')).length);
});
