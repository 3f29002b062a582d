// Checks bodies against OpenAI's own description, where a checkout of it lies beside the repository.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import Ajv from 'ajv/dist/2020.js';
import yaml from 'js-yaml';

const root = path.resolve(import.meta.dirname, '../..');
const file = process.env.MOLLY_OPENAPI ?? path.join(root, '../shared/contracts/openai-openapi.yaml');

/** Why nothing is checked, or undefined. */
export const contract_missing = fs.existsSync(file) ? undefined : `no OpenAI description at ${file} (set MOLLY_OPENAPI)`;

let ajv;
let event_schemas;

// The description says `nullable` as OpenAPI 3.0 did, which JSON Schema 2020-12 ignores.
function mend_nullable(node) {
    if (node === null || typeof node !== 'object')
        return;
    for (const child of Object.values(node))
        mend_nullable(child);
    if (node.nullable !== true)
        return;
    delete node.nullable;
    if (typeof node.type === 'string')
        node.type = [node.type, 'null'];
    if (Array.isArray(node.enum) && !node.enum.includes(null))
        node.enum.push(null);
    for (const kind of ['anyOf', 'oneOf'])
        if (Array.isArray(node[kind]))
            node[kind].push({ type: 'null' });
    if (node.$ref) {
        node.anyOf = [{ $ref: node.$ref }, { type: 'null' }];
        delete node.$ref;
    }
}

function load() {
    const description = yaml.load(fs.readFileSync(file, 'utf8'), { schema: yaml.CORE_SCHEMA });
    mend_nullable(description.components);
    ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true, logger: false });
    ajv.addSchema({ $id: 'openai', components: description.components });
    event_schemas = new Map();
    const { schemas } = description.components;
    for (const { $ref } of schemas.ResponseStreamEvent.anyOf ?? schemas.ResponseStreamEvent.oneOf) {
        const name = $ref.split('/').at(-1);
        event_schemas.set(schemas[name].properties.type.enum?.[0] ?? schemas[name].properties.type.const, name);
    }
}

/** Asserts that `body` is a `name` of the description. Does nothing where the description is missing. */
export function assert_contract(name, body) {
    if (contract_missing)
        return;
    if (!ajv)
        load();
    const validate = ajv.getSchema(`openai#/components/schemas/${name}`);
    assert.ok(validate, `the description has no schema ${name}`);
    if (validate(body))
        return;
    const faults = validate.errors.slice(0, 6).map((error) => `${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`);
    assert.fail(`not a ${name}:\n${faults.join('\n')}\n${JSON.stringify(body).slice(0, 1500)}`);
}

/** Asserts that one event of a Responses stream is what its type promises. */
export function assert_event_contract(event) {
    if (contract_missing)
        return;
    if (!ajv)
        load();
    const name = event_schemas.get(event.type);
    assert.ok(name, `the description knows no event ${event.type}`);
    assert_contract(name, event);
}
