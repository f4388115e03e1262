// The schema of reports as types of TypeScript, as far as the schema goes: it has no types but these.

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  title?: string;
  description?: string;
  type?: string | string[];
  enum?: (string | null)[];
  const?: string | boolean;
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema;
}

const HEAD = "// Made from report/render/report.schema.json: `npx vitest run -u` in viewer/ makes it anew.\n";

// "root_cause" is RootCause.
function nameOf(definition: string): string {
  return definition.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
}

// "#/$defs/root_cause/properties/why" is RootCause["why"].
function referenceOf(path: string): string {
  const [name = "", , property] = path.replace("#/$defs/", "").split("/");
  return property === undefined ? nameOf(name) : `${nameOf(name)}["${property}"]`;
}

function membersOf({ properties = {}, required = [] }: Schema, indent: string): string {
  const lines = Object.entries(properties).map(([name, schema]) => {
    const optional = required.includes(name) ? "" : "?";
    return `${indent}  ${name}${optional}: ${typeOf(schema, `${indent}  `)};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function listOf(items: Schema, indent: string): string {
  const type = typeOf(items, indent);
  return type.includes(" | ") && !type.startsWith("{") ? `(${type})[]` : `${type}[]`;
}

function simple(type: string, schema: Schema, indent: string): string {
  if (type === "integer") return "number";
  if (type === "array") return listOf(schema.items ?? {}, indent);
  if (type !== "object") return type;
  if (schema.additionalProperties) return `Record<string, ${typeOf(schema.additionalProperties, indent)}>`;
  return membersOf(schema, indent);
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return referenceOf(schema.$ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map((one) => typeOf(one, indent)).join(" | ");
  if (schema.type === undefined) throw new Error(`no type: ${JSON.stringify(schema)}`);
  return [schema.type].flat().map((type) => simple(type, schema, indent)).join(" | ");
}

function declared(name: string, schema: Schema): string {
  const about = schema.description === undefined ? "" : `// ${schema.description}\n`;
  if (schema.type === "object") return `${about}export interface ${name} ${membersOf(schema, "")}\n`;
  return `${about}export type ${name} = ${typeOf(schema, "")};\n`;
}

export function typesOf(schema: Schema): string {
  const { title = "", $defs = {} } = schema;
  const definitions = Object.entries($defs).map(([name, one]) => declared(nameOf(name), one));
  return [HEAD, ...definitions, declared(nameOf(title.replace("devsan ", "")), schema)].join("\n");
}
