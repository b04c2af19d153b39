/** The API reference, rendered from the OpenAPI document. */
import { createContext } from 'preact'
import { useContext, useEffect, useRef, useState } from 'preact/hooks'
import { useLive } from './api.js'
import { Tabs } from './forms.js'
import { Badge, Facts, Method, Table } from './parts.js'
import type { Call } from './samples.js'
import type { Schema } from './schema-text.js'
import { Detail, ItemScreen } from './screen.js'
import { Composer } from './send.js'
import { CodeTabs, Terminal } from './text.js'

type Content = Record<string, { schema?: Schema; example?: unknown }>

interface Described {
  operationId: string
  tags: string[]
  summary: string
  description: string
  parameters: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Content }
  responses: Record<string, { $ref?: string; description?: string; content?: Content }>
  security: Record<string, string[]>[]
  'x-code-samples': { source: string }[]
}

export interface Document {
  paths: Record<string, Record<string, Described>>
  info: { version: string; description: string }
  components: { schemas: Record<string, Schema>; securitySchemes: Record<string, { name: string }> }
}

const DocumentContext = createContext<Document | undefined>(undefined)
export const DocumentProvider = DocumentContext.Provider

type Operation = Described & { method: string; path: string; id: string }
/** A section of the HTML that the server has sent. */
type Guided = { id: string; path?: undefined }

function listOperations(document: Document | undefined): Operation[] {
  return Object.entries(document?.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
    })),
  )
}

function bodyOf({ requestBody }: Described): { type?: string; schema?: Schema; example?: unknown } {
  const [type, { schema, example } = {}] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return {
    ...(type && { type: type === '*/*' ? 'application/json' : type }),
    ...(schema && { schema }),
    example,
  }
}

/** `name`: for example `token create`. Returns the path, and the media type, schema and example of the body. */
export function useOperation(name: string | undefined) {
  const document = useContext(DocumentContext)
  const found = listOperations(document).find(({ operationId }) => operationId === name?.replaceAll(' ', '-'))
  return found && { template: found.path, ...bodyOf(found) }
}

const GUIDES: Record<string, string> = {
  clients: 'Clients',
  fidelity: 'What is emulated',
  'test-cards': 'Test cards',
}

export function Reference() {
  const document = useContext(DocumentContext)
  const guides = Object.keys(GUIDES).map((id): Guided => ({ id }))
  const all = [...listOperations(document), ...guides]
  return (
    <ItemScreen<Operation | Guided>
      thing="operation"
      find="Path, operation"
      actions={
        <a class="button" href="/openapi.json">
          OpenAPI document
        </a>
      }
      asked={document ? { result: { data: all } } : {}}
      textOf={(row) =>
        row.path ? `${row.method} ${row.path} ${row.id.replaceAll('-', ' ')} ${row.summary}` : ''
      }
      groupOf={(row) => (row.path ? row.tags[0]! : 'about')}
      itemClass="op"
      item={(row) => (
        <>
          <span>{row.path && <Method name={row.method} />}</span>
          <span class="mono">{row.path ?? GUIDES[row.id]}</span>
        </>
      )}
      detail={ReferenceDetail}
    />
  )
}

const ReferenceDetail = ({ of }: { of: Operation | Guided }) =>
  of.path === undefined ? <Guide id={of.id} /> : <OperationDetail operation={of} />

function Guide({ id }: { id: string }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => place.current!.append(document.getElementById(id)!.cloneNode(true)), [])
  return (
    <Detail title={GUIDES[id]!}>
      <div class="guide stack" ref={place} />
    </Detail>
  )
}

function OperationDetail({ operation }: { operation: Operation }) {
  const document = useContext(DocumentContext)!
  const isAlone = useLive() === undefined
  const { method, path, summary, description, parameters, security } = operation
  const { type, schema, example } = bodyOf(operation)
  const body = type && JSON.stringify(example ?? {}, undefined, 2)
  const [call, setCall] = useState<Omit<Call, 'header'>>({ method, path, type, body })
  const inside = (place: string) => parameters.filter((each) => each.in === place)
  const headers = inside('header').map((each) => [each.name, each.description])
  const named = [...inside('path'), ...inside('query')]
  const header = Object.values(document.components.securitySchemes)[0]!.name
  const permissions = security.map((each) => Object.values(each).flat().join(' and ')).filter(Boolean)
  // Leaves out the paragraph about permissions, because badges show the permissions.
  const paragraphs = description.split('\n\n').filter((text) => !/^Permissions?: /.test(text))
  const head = (
    <>
      <span class="dim">{summary}</span>
      <span class="push row">
        {permissions.map((name, at) => [at > 0 && 'or', <Badge key={name}>{name}</Badge>])}
      </span>
    </>
  )
  return (
    <Detail kind="doc" title={path} method={method} head={head}>
      <div class="stack">
        {paragraphs.map((text) => (
          <p key={text}>{text}</p>
        ))}
        {headers.length > 0 && <h3>Header</h3>}
        {headers.length > 0 && <Facts of={Object.fromEntries(headers)} />}
        {named.length > 0 && <h3>Parameters</h3>}
        <Properties of={named} />
        {schema && <h3>Body</h3>}
        {schema && <SchemaTable schema={schema} />}
        <h3>Answers</h3>
        <Answers responses={operation.responses} />
        <h3>On the command line</h3>
        <Terminal text={operation['x-code-samples'].map(({ source }) => source).join('\n')} />
      </div>
      <div class="stack">
        {!isAlone && !path.startsWith('/proxy') && (
          <div class="card stack">
            <h3 class="title">Try it</h3>
            <Composer
              draft={{ method, path, query: inside('query').map(({ name }) => name), type, body }}
              change={setCall}
            />
          </div>
        )}
        <CodeTabs call={{ ...call, header }} />
      </div>
    </Detail>
  )
}

const MEANINGS: Record<string, string> = {
  400: 'The request is not valid. The member “errors” of the answer lists the invalid properties.',
  401: 'The API key is missing, unknown or expired.',
  403: 'The key has no permission for this.',
  404: 'There is nothing with this id.',
  409: 'The record exists, or the first call with this idempotency key still runs.',
  413: 'The body is too long.',
  415: 'The content type is not accepted.',
  429: 'The application has sent too many requests. Retry-After says when to try again.',
  500: 'The server failed. Its log has the reason under the trace id.',
}

function Answers({ responses }: Pick<Described, 'responses'>) {
  const { schemas } = useContext(DocumentContext)!.components
  const all = Object.entries(responses)
  const tabs = all.flatMap(([status, { $ref, description, content }]) => {
    const schema = content?.['application/json']?.schema
    const show = () => (schema === undefined ? <p>{description}</p> : <SchemaTable schema={schema} />)
    return $ref === undefined ? [[status, show]] : []
  })
  const refused = all.flatMap(([status, { $ref }]) =>
    $ref && MEANINGS[status] ? [[status, MEANINGS[status]]] : [],
  )
  const problems = () => (
    <>
      <Facts of={Object.fromEntries(refused)} />
      <SchemaTable schema={schemas.Problem ?? {}} />
    </>
  )
  const last = refused.length > 0 && { Problems: problems }
  return <Tabs label="Answers" tabs={{ ...Object.fromEntries(tabs), ...last }} />
}

function SchemaTable({ schema }: { schema: Schema }) {
  const { schemas } = useContext(DocumentContext)!.components
  const named = (each: Schema): Schema =>
    each.$ref === undefined ? each : (schemas[each.$ref.split('/').at(-1)!] ?? {})
  const whole = named(schema)
  const { properties = {}, required = [] } = whole.type === 'array' ? named(whole.items ?? {}) : whole
  const entries = Object.entries(properties)
  const rows = entries.map(([name, each]) => ({ name, schema: each, required: required.includes(name) }))
  if (rows.length === 0) return <p>{describeType(schema)}</p>
  return (
    <>
      {whole.type === 'array' && <p>A list of:</p>}
      <Properties of={rows} />
    </>
  )
}

type Property = Omit<Described['parameters'][number], 'in'>

const nameProperty = ({ name, required }: Property) => (
  <>
    <code>{name}</code> {required && <Badge>required</Badge>}
  </>
)

const Properties = ({ of }: { of: Property[] }) => (
  <Table
    rows={of}
    columns={[
      ['Property', '', nameProperty],
      ['Type', '', ({ schema }) => describeType(schema)],
      ['About', '', ({ schema, description = schema.description }) => description],
    ]}
  />
)

function describeType({ type, enum: choices, items, $ref, default: usual, description }: Schema): string {
  if ($ref !== undefined) return $ref.split('/').at(-1)!
  if (choices !== undefined) return description === undefined ? `one of ${choices.join(', ')}` : 'string'
  const name = type === undefined ? 'any JSON' : [type].flat().join(' or ')
  return `${name}${items === undefined ? '' : ` of ${describeType(items)}`}${usual === undefined ? '' : `, default ${usual}`}`
}
