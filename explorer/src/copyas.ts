// A request of the wire as a program: curl with its signature, or the official SDK of a language.
//
// No key is written: every program reads it from the environment variable COSMOS_KEY. What is written comes from the requests of
// strangers, too, and is pasted into terminals: every part of it stays the text that it is.
import { parse, RawNumber, write, type Value } from "./json.ts";
import { session } from "./api.ts";

export interface WireRequest {
  method: string;
  /** Without a leading slash, segments decoded. */
  path: string;
  sql?: string | null;
  /** JSON text of `[{"name","value"}]`. */
  parameters?: string | null;
}
export type Target = "curl" | "Python" | "JavaScript" | "C#" | "Java" | "Go";
export const TARGETS: Target[] = ["curl", "Python", "JavaScript", "C#", "Java", "Go"];

interface Parts {
  database: string;
  container: string;
  document: string;
  kind: "query" | "read" | "list" | "create" | "replace" | "delete" | "other";
}

function partsOf(request: WireRequest): Parts {
  const steps = request.path.split("/");
  const [database, container, document] = [steps[1] ?? "", steps[2] === "colls" ? (steps[3] ?? "") : "", steps[4] === "docs" ? (steps[5] ?? "") : ""];
  const onDocuments = steps[4] === "docs";
  const kinds: Record<string, Parts["kind"]> = document ? { GET: "read", PUT: "replace", DELETE: "delete" } : { POST: "create", GET: "list" };
  return { database, container, document, kind: request.sql && onDocuments ? "query" : ((onDocuments && kinds[request.method]) || "other") };
}

const endpoint = () => session.value?.account.endpoint?.replace(/\/$/, "") ?? location.origin;
/** What a terminal or an editor does not show as it is: control characters, other ends of lines, what turns the direction. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/;
const ALL_UNSEEN = new RegExp(UNSEEN.source, "g");
const escaped = (json: string) => json.replace(ALL_UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
/** A literal of JavaScript, Python, C#, Java and Go alike. */
const text = (value: string) => escaped(JSON.stringify(value));
/** A value as JSON, in which no text has anything unseen. */
const json = (value: Value) => escaped(write(value));
/** A word of the shell, whatever is in it. */
export function shell(value: string): string {
  if (!UNSEEN.test(value)) return `'${value.replaceAll("'", "'\\''")}'`;
  const bytes = (char: string) => [...new TextEncoder().encode(char)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  return `$'${value.replace(/[\\']/g, "\\$&").replace(ALL_UNSEEN, bytes)}'`;
}
const parametersOf = (request: WireRequest): { name: string; value: Value }[] => {
  const list = parse(request.parameters || "[]");
  return Array.isArray(list) ? list.flatMap((p) => (p instanceof Map ? [{ name: String(p.get("name")), value: p.get("value") ?? null }] : [])) : [];
};

/** curl would take them for steps. */
const isDots = (step: string) => step === "." || step === "..";

function curl(request: WireRequest): string {
  const steps = request.path.split("/").filter(Boolean);
  const single = steps.length % 2 === 0;
  const type = steps.length === 0 ? "" : (single ? steps.at(-2)! : steps.at(-1)!);
  const link = (single ? steps : steps.slice(0, -1)).join("/");
  const url = `${endpoint()}/${steps.map(encodeURIComponent).join("/")}`;
  const lines = [
    `DATE=$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')`,
    `HEX=$(printf %s "$COSMOS_KEY" | base64 -d | od -An -tx1 | tr -d ' \\n')`,
    `SIGNATURE=$(printf '%s\\n%s\\n%s\\n%s\\n\\n' ${shell(request.method.toLowerCase())} ${shell(type)} ${shell(link)} "$(printf %s "$DATE" | tr A-Z a-z)" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$HEX" -binary | base64)`,
    `TOKEN=$(printf %s "type=master&ver=1.0&sig=$SIGNATURE" | sed 's/&/%26/g; s/=/%3D/g; s/+/%2B/g; s,/,%2F,g')`,
    `curl -sS${steps.some(isDots) ? " --path-as-is" : ""} -X ${/^[A-Z]+$/.test(request.method) ? request.method : shell(request.method)} ${shell(url)} \\`,
    `  -H "authorization: $TOKEN" -H "x-ms-date: $DATE" -H 'x-ms-version: 2020-07-15'`,
  ];
  if (request.sql) {
    lines[lines.length - 1] += " \\";
    lines.push(`  -H 'content-type: application/query+json' -H 'x-ms-documentdb-isquery: true' -H 'x-ms-documentdb-query-enablecrosspartition: true' \\`);
    lines.push(`  --data-raw ${shell(`{"query":${text(request.sql)},"parameters":${json(parse(request.parameters || "[]"))}}`)}`);
  } else if (request.method === "POST" || request.method === "PUT") {
    lines[lines.length - 1] += " \\";
    lines.push(`  -H 'content-type: application/json' -H 'x-ms-documentdb-partitionkey: ["PARTITION KEY"]' --data-raw '{"id":"ID"}'`);
  } else if (type === "docs" && single) {
    lines[lines.length - 1] += ` -H 'x-ms-documentdb-partitionkey: ["PARTITION KEY"]'`;
  }
  return lines.join("\n") + "\n";
}

/** JSON is nearly Python. */
function pythonLiteral(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (value instanceof Map) return `{${[...value].map(([name, field]) => `${text(name)}: ${pythonLiteral(field)}`).join(", ")}}`;
  return json(value);
}

function python(request: WireRequest): string {
  const { database, container, document, kind } = partsOf(request);
  const parameters = parametersOf(request).map((p) => `{"name": ${text(p.name)}, "value": ${pythonLiteral(p.value)}}`).join(", ");
  const calls: Record<Parts["kind"], string> = {
    query: `for row in container.query_items(\n    ${text(request.sql ?? "")},\n    parameters=[${parameters}],\n    enable_cross_partition_query=True,\n):\n    print(row)`,
    read: `print(container.read_item(${text(document)}, partition_key="PARTITION KEY"))`,
    list: `for row in container.read_all_items():\n    print(row)`,
    create: `print(container.create_item({"id": "ID"}))`,
    replace: `print(container.replace_item(${text(document)}, {"id": ${text(document)}}))`,
    delete: `container.delete_item(${text(document)}, partition_key="PARTITION KEY")`,
    other: `print(container.read())`,
  };
  return `import os\nfrom azure.cosmos import CosmosClient\n\nclient = CosmosClient(${text(endpoint())}, os.environ["COSMOS_KEY"])\ncontainer = client.get_database_client(${text(database)}).get_container_client(${text(container)})\n${calls[kind]}\n`;
}

function javascript(request: WireRequest): string {
  const { database, container, document, kind } = partsOf(request);
  const calls: Record<Parts["kind"], string> = {
    query: `const { resources } = await container.items.query({\n  query: ${text(request.sql ?? "")},\n  parameters: ${json(parse(request.parameters || "[]"))},\n}).fetchAll();\nconsole.log(resources);`,
    read: `console.log((await container.item(${text(document)}, "PARTITION KEY").read()).resource);`,
    list: `console.log((await container.items.readAll().fetchAll()).resources);`,
    create: `console.log((await container.items.create({ id: "ID" })).resource);`,
    replace: `console.log((await container.item(${text(document)}, "PARTITION KEY").replace({ id: ${text(document)} })).resource);`,
    delete: `await container.item(${text(document)}, "PARTITION KEY").delete();`,
    other: `console.log((await container.read()).resource);`,
  };
  return `import { CosmosClient } from "@azure/cosmos";\n\nconst client = new CosmosClient({ endpoint: ${text(endpoint())}, key: process.env.COSMOS_KEY });\nconst container = client.database(${text(database)}).container(${text(container)});\n${calls[kind]}\n`;
}

/** A value as source text of languages that have no JSON literals. */
function typedLiteral(value: Value, nothing: string, otherwise: (written: string) => string): string {
  if (value === null) return nothing;
  if (typeof value === "object" && !(value instanceof RawNumber)) return otherwise(json(value));
  return json(value);
}

function csharp(request: WireRequest): string {
  const { database, container, document, kind } = partsOf(request);
  const parameters = parametersOf(request).map((p) => `\n    .WithParameter(${text(p.name)}, ${typedLiteral(p.value, "null", (written) => `JToken.Parse(${text(written)})`)})`).join("");
  const key = `new PartitionKey("PARTITION KEY")`;
  const calls: Record<Parts["kind"], string> = {
    query: `var query = new QueryDefinition(${text(request.sql ?? "")})${parameters};\nusing var feed = container.GetItemQueryIterator<JToken>(query);\nwhile (feed.HasMoreResults)\n    foreach (var row in await feed.ReadNextAsync())\n        Console.WriteLine(row);`,
    read: `Console.WriteLine((await container.ReadItemAsync<JObject>(${text(document)}, ${key})).Resource);`,
    list: `using var feed = container.GetItemQueryIterator<JToken>();\nwhile (feed.HasMoreResults)\n    foreach (var row in await feed.ReadNextAsync())\n        Console.WriteLine(row);`,
    create: `await container.CreateItemAsync(new JObject { ["id"] = "ID" });`,
    replace: `await container.ReplaceItemAsync(new JObject { ["id"] = ${text(document)} }, ${text(document)}, ${key});`,
    delete: `await container.DeleteItemAsync<JObject>(${text(document)}, ${key});`,
    other: `Console.WriteLine((await container.ReadContainerAsync()).Resource.Id);`,
  };
  return `using Microsoft.Azure.Cosmos;\nusing Newtonsoft.Json.Linq;\n\nvar client = new CosmosClient(${text(endpoint())}, Environment.GetEnvironmentVariable("COSMOS_KEY"),\n    new CosmosClientOptions { ConnectionMode = ConnectionMode.Gateway });\nvar container = client.GetContainer(${text(database)}, ${text(container)});\n${calls[kind]}\n`;
}

function java(request: WireRequest): string {
  const { database, container, document, kind } = partsOf(request);
  const parameters = parametersOf(request).map((p) => `new SqlParameter(${text(p.name)}, ${typedLiteral(p.value, "null", (written) => `new ObjectMapper().readTree(${text(written)})`)})`).join(", ");
  const key = `new PartitionKey("PARTITION KEY")`;
  const calls: Record<Parts["kind"], string> = {
    query: `SqlQuerySpec query = new SqlQuerySpec(${text(request.sql ?? "")}, List.of(${parameters}));\n            container.queryItems(query, new CosmosQueryRequestOptions(), JsonNode.class).forEach(System.out::println);`,
    read: `System.out.println(container.readItem(${text(document)}, ${key}, JsonNode.class).getItem());`,
    list: `container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), JsonNode.class).forEach(System.out::println);`,
    create: `container.createItem(new ObjectMapper().createObjectNode().put("id", "ID"));`,
    replace: `container.replaceItem(new ObjectMapper().createObjectNode().put("id", ${text(document)}), ${text(document)}, ${key}, null);`,
    delete: `container.deleteItem(${text(document)}, ${key}, null);`,
    other: `System.out.println(container.read().getProperties().getId());`,
  };
  // Without it the SDK turns every http address into https.
  const plain = endpoint().startsWith("http:") ? `        System.setProperty("COSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED", "true");\n` : "";
  return `import com.azure.cosmos.*;\nimport com.azure.cosmos.models.*;\nimport com.fasterxml.jackson.databind.*;\nimport java.util.List;\n\npublic class Request {\n    public static void main(String[] arguments) throws Exception {\n${plain}        try (CosmosClient client = new CosmosClientBuilder().endpoint(${text(endpoint())}).key(System.getenv("COSMOS_KEY")).gatewayMode().buildClient()) {\n            CosmosContainer container = client.getDatabase(${text(database)}).getContainer(${text(container)});\n            ${calls[kind]}\n        }\n    }\n}\n`;
}

function go(request: WireRequest): string {
  const { database, container, document, kind } = partsOf(request);
  const parameters = parametersOf(request).map((p) => `{Name: ${text(p.name)}, Value: ${typedLiteral(p.value, "nil", (written) => `json.RawMessage(${text(written)})`)}}`).join(", ");
  const key = `azcosmos.NewPartitionKeyString("PARTITION KEY")`;
  const pager = (sql: string, options: string) => `pager := container.NewQueryItemsPager(${text(sql)}, azcosmos.NewPartitionKey(), ${options})\n\tfor pager.More() {\n\t\tpage, err := pager.NextPage(context.Background())\n\t\tcheck(err)\n\t\tfor _, row := range page.Items {\n\t\t\tfmt.Println(string(row))\n\t\t}\n\t}`;
  const one = (call: string) => `answer, err := ${call}\n\tcheck(err)\n\tfmt.Println(string(answer.Value))`;
  const calls: Record<Parts["kind"], string> = {
    query: pager(request.sql ?? "", `&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{${parameters}}}`),
    read: one(`container.ReadItem(context.Background(), ${key}, ${text(document)}, nil)`),
    list: pager("SELECT * FROM c", "nil"),
    create: one(`container.CreateItem(context.Background(), ${key}, []byte("{\\"id\\":\\"ID\\"}"), nil)`),
    replace: one(`container.ReplaceItem(context.Background(), ${key}, ${text(document)}, []byte("{\\"id\\":\\"ID\\"}"), nil)`),
    delete: `_, err = container.DeleteItem(context.Background(), ${key}, ${text(document)}, nil)\n\tcheck(err)`,
    other: `answer, err := container.Read(context.Background(), nil)\n\tcheck(err)\n\tfmt.Println(answer.ContainerProperties.ID)`,
  };
  const body = calls[kind];
  const imports = ["context", ...(body.includes("json.") ? ["encoding/json"] : []), ...(body.includes("fmt.") ? ["fmt"] : []), "os"].map((name) => `\t"${name}"`).join("\n");
  return `package main\n\nimport (\n${imports}\n\n\t"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"\n)\n\nfunc check(err error) {\n\tif err != nil {\n\t\tpanic(err)\n\t}\n}\n\nfunc main() {\n\tcredential, err := azcosmos.NewKeyCredential(os.Getenv("COSMOS_KEY"))\n\tcheck(err)\n\tclient, err := azcosmos.NewClientWithKey(${text(endpoint())}, credential, nil)\n\tcheck(err)\n\tcontainer, err := client.NewContainer(${text(database)}, ${text(container)})\n\tcheck(err)\n\t${body}\n}\n`;
}

const WRITERS: Record<Target, (request: WireRequest) => string> = { curl, Python: python, JavaScript: javascript, "C#": csharp, Java: java, Go: go };
export const programOf = (target: Target, request: WireRequest): string => WRITERS[target](request);
